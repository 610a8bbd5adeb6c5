# SPDX-License-Identifier: MIT
"""Many runs, each once: jobs, the places where they can run, and the loop over them."""
