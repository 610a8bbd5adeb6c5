# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_core"

setup(
    name=package_name,
    version="0.1.0",
    description=(
        "ROS-free core shared by training and robot: geometry, policy contract, observation, "
        "action, safety."
    ),
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed", "robot_description/*.urdf"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "imageio-ffmpeg",
        "jinja2",
        "numba",
        "numpy",
        "pyyaml",
        "rich",
        "ruckig",
        "scipy",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "equi-bench = equi_core.bench:main",
            "equi-models = equi_core.model_zoo.command:main",
        ],
    },
)
