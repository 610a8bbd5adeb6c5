# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_cell_sim"

setup(
    name=package_name,
    version="0.1.0",
    description="The simulated cell: physics arm, depth cameras, scenes and the scripted expert.",
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
        "equi_policy",
        "equi_rl",
        "equi_ros",
        "numba",
        "numpy",
        "scipy",
        "ur_emulator",
    ],
    extras_require={"test": ["pytest"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "equi-ur-emulator = equi_cell_sim.executables:emulator",
            "camera_node = equi_cell_sim.executables:camera_node",
            "scene_node = equi_cell_sim.executables:scene_node",
            "expert_policy_node = equi_cell_sim.executables:expert_policy_node",
            "wait_ready = equi_cell_sim.executables:wait_ready",
        ],
        "ur_emulator.arms": ["physics = equi_cell_sim.physics_arm:PhysicsArm"],
    },
)
