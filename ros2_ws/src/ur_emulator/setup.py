# SPDX-License-Identifier: MIT
from pathlib import Path

from setuptools import find_packages, setup

package_name = "ur_emulator"

setup(
    name=package_name,
    version="0.1.0",
    description="An emulated UR controller and Robotiq gripper over TCP, for unmodified ur_rtde.",
    long_description=(Path(__file__).resolve().parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
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
        "numba",
        "numpy",
        "scipy",
    ],
    extras_require={"test": ["pytest", "ur_rtde"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={"console_scripts": ["ur-emulator = ur_emulator.main:main"]},
)
