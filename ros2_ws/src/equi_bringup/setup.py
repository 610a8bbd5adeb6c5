# SPDX-License-Identifier: MIT
from glob import glob

from setuptools import find_packages, setup

package_name = "equi_bringup"

setup(
    name=package_name,
    version="0.1.0",
    description="Launch files, cells and view settings of the whole system.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        (f"share/{package_name}/launch", glob("launch/*.launch.py")),
        (f"share/{package_name}/cells", glob("launch/cells/*.yaml")),
        (f"share/{package_name}/config", glob("launch/config/*")),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_core",
        "equi_ros",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
)
