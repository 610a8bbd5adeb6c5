# SPDX-License-Identifier: MIT
from glob import glob

from setuptools import find_packages, setup

package_name = "equi_policy"

setup(
    name=package_name,
    version="0.1.0",
    description="Runs an exported recurrent policy in plain PyTorch with explicit state.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        # The front door; it includes the file of equi_bringup.
        (f"share/{package_name}/launch", glob("launch/*.launch.py")),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_core",
        "equi_ros",
        "mcap",
        "mcap-ros2-support",
        "numpy",
        "scipy",
        "rich",
        "safetensors",
        "torch",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "policy_node = equi_policy.executables:policy_node",
            "replay = equi_policy.replay:main",
        ],
        "equi.benchmarks": ["policy-step = equi_policy.bench_policy_step:run"],
    },
)
