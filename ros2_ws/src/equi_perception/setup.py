# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_perception"

setup(
    name=package_name,
    version="0.1.0",
    description="Fuses depth cameras into the top-down observation that the policy was trained on.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_core",
        "equi_ros",
        "numpy",
        "open3d",
        "rich",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "depth_fusion_node = equi_perception.executables:depth_fusion_node",
        ],
        "equi.benchmarks": ["fusion = equi_perception.bench_fusion:run"],
    },
)
