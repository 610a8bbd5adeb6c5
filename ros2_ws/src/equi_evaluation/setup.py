# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_evaluation"

setup(
    name=package_name,
    version="0.1.0",
    description="Runs, records, labels and reports evaluation episodes of a policy.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(exclude=["test"]),
    package_data={package_name: ["py.typed", "*.j2"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_core",
        "equi_ros",
        "matplotlib",
        "mcap",
        "mcap-ros2-support",
        "numpy",
        "opencv-python-headless",
        "pyyaml",
        "rich",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "evaluate = equi_evaluation.executables:evaluate",
            "play_bag = equi_evaluation.executables:play_bag",
            "report = equi_evaluation.report_command:main",
            "demo = equi_evaluation.demo:main",
        ],
    },
)
