# SPDX-License-Identifier: MIT
from glob import glob

from setuptools import find_packages, setup

package_name = "equi_calibration"

setup(
    name=package_name,
    version="0.1.0",
    description="Camera calibration of the cell: collect, solve, and a verdict in millimetres.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(include=["equi_calibration*"]),
    package_data={package_name: ["py.typed", "check/*.j2"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        # Of the simulated cell; that of a real one is written to ~/.ros/equi/calibration.
        (f"share/{package_name}/results/sim", glob("results/sim/*")),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_cell_sim",
        "equi_control",
        "equi_core",
        "equi_rl",
        "equi_ros",
        "matplotlib",
        "numpy",
        "open3d",
        "opencv-python-headless<5",
        "rich",
        "scipy",
        "tyro",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": ["equi-calibrate = equi_calibration.cli:main"],
        "equi_cell_sim.overlays": [
            "board = equi_calibration.synthetic.board_in_hand:BoardInHand",
        ],
    },
)
