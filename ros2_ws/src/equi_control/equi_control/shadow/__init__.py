# SPDX-License-Identifier: MIT
"""A driver that only listens: the policy runs on live cameras, and nothing can move."""
