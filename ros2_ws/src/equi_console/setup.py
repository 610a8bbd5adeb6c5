# SPDX-License-Identifier: MIT
from setuptools import find_packages, setup

package_name = "equi_console"

setup(
    name=package_name,
    version="0.1.0",
    description="The operator's console in the browser: live views, state, actions, protocol.",
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
        "equi_evaluation",
        "equi_perception",
        "equi_ros",
        "numpy",
        "opencv-python-headless",
        "scipy",
    ],
    extras_require={"test": ["pytest"], "browser": ["nicegui"]},
    python_requires=">=3.10,<3.13",
    zip_safe=True,
    entry_points={
        "console_scripts": [
            "console = equi_console.executables:console",
        ],
    },
)
