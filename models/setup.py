# SPDX-License-Identifier: MIT
from glob import glob
from pathlib import Path

from setuptools import setup

package_name = "equi_models"
# What the robot loads, and what a person reads before it does; pictures stay behind.
PARTS = (
    *("contract.json", "policy.safetensors", "evaluation.json", "MODEL_CARD.md", "scenes.json"),
    *("probe.json", "PROBE_CARD.md"),
)

setup(
    name=package_name,
    version="0.1.0",
    description="Trained policies: weights, contract and card of each task.",
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=[],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        *(
            (
                f"share/{package_name}/models/{Path(contract).parent.name}",
                [file for part in PARTS for file in glob(f"{Path(contract).parent}/{part}")],
            )
            for contract in sorted(glob("*/contract.json"))
        ),
    ],
    extras_require={"test": ["pytest"]},
    zip_safe=True,
)
