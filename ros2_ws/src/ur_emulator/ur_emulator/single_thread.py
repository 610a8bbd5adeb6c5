# SPDX-License-Identifier: MIT
"""Linear algebra in one thread; takes effect if imported before numpy.

OpenBLAS's threads wait by spinning. They inherit the controller's real-time priority and would keep
each other, and the cameras, from the processors: the first contact costs seconds. The matrices here
are 6 by 6.
"""

import os

THREADS = os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Threads of OpenBLAS; what the user has set stays."""
