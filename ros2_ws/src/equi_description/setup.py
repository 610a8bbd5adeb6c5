# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_description"

setup(
    name=package_name,
    version="0.1.0",
    description="URDF of the arm with its gripper, its transforms, and the next step as a marker.",
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
    install_requires=["equi_core", "equi_ros"],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "robot_state_publisher = equi_description.executables:robot_state_publisher",
            "motion_marker_node = equi_description.executables:motion_marker_node",
            "print_urdf = equi_description.print_urdf:main",
        ],
    },
)
