# SPDX-License-Identifier: MIT
"""DreamerV2 and DreamerV3 on CarFlag, trained by sheeprl in an environment of its own."""
