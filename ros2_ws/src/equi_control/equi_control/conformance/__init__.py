# SPDX-License-Identifier: MIT
"""`equi-conformance`: measures how one robot behaves, for the emulator to be fitted to it."""
