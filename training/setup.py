# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_rl"

setup(
    name=package_name,
    version="0.1.0",
    description=(
        "Simulated world, equivariant recurrent networks and agents for partially observable "
        "manipulation."
    ),
    author="The equi-rl-ur5 authors",
    maintainer="The equi-rl-ur5 authors",
    maintainer_email="maintainers@example.com",
    license="MIT",
    packages=find_packages(include=["equi_rl*"]),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
    ],
    # Exact versions are pinned in requirements/ at the repository root.
    install_requires=[
        "equi_core",
        "escnn",
        "gymnasium",
        "matplotlib",
        "numba",
        "numpy",
        "pillow",
        "pybullet",
        "rich",
        "safetensors",
        "scipy",
        "tensorboard",
        "torch",
        "typing-extensions",
        "tyro",
    ],
    extras_require={"test": ["pytest"], "cluster": ["ray", "submitit"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "equi-train = equi_rl.cli.train:main",
            "equi-sweep = equi_rl.cli.sweep:main",
            "equi-report = equi_rl.cli.report:main",
            "equi-audit = equi_rl.cli.audit:main",
            "equi-evaluate = equi_rl.cli.evaluate:main",
            "equi-export = equi_rl.cli.export:main",
            "equi-scenes = equi_rl.export.scene_layouts:main",
            "equi-demos = equi_rl.cli.demos:main",
            "equi-probe = equi_rl.cli.probe:main",
        ],
        "equi.benchmarks": [
            "carflag = equi_rl.carflag.bench:run",
            "train-step = equi_rl.bench.train_step:run",
            "update = equi_rl.bench.update:run",
            "env = equi_rl.bench.env:run",
            "scale = equi_rl.bench.scale:run",
        ],
    },
)
