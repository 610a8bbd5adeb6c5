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
    maintainer="equi-rl-ur5 maintainers",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=["numpy", "scipy", "numba", "rich", "ruckig", "jinja2", "imageio-ffmpeg"],
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={"console_scripts": ["equi-bench = equi_core.bench:main"]},
)
