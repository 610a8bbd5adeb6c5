# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_control"

setup(
    name=package_name,
    version="0.1.0",
    description="UR5 and 2F-85 driver: checked servo streaming over RTDE that fails safe.",
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
        "scipy",
        "ur_rtde",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "equi-conformance = equi_control.conformance.main:main",
            "equi-doctor = equi_control.doctor.main:main",
            "rtde_driver_node = equi_control.executables:rtde_driver_node",
        ],
    },
)
