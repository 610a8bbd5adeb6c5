# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_system_tests"

setup(
    name=package_name,
    version="0.1.0",
    description="Fault injection and studies of the whole system in the simulated cell.",
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
        "equi_calibration",
        "equi_cell_sim",
        "equi_control",
        "equi_core",
        "equi_policy",
        "equi_rl",
        "matplotlib",
        "numpy",
        "opencv-python-headless",
        "rich",
        "ur_emulator",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "equi-faults = equi_system_tests.faults.fault_report:main",
            "equi-contact = equi_system_tests.faults.contact_trials:main",
        ],
        "equi.benchmarks": [
            "observation = equi_system_tests.studies.observation_check:run",
            "servo = equi_system_tests.faults.servo_bench:run",
            "calibration = equi_system_tests.studies.calibration_accuracy:run",
            "miscalibration = equi_system_tests.studies.miscalibration:run",
        ],
    },
)
