# SPDX-License-Identifier: MIT
"""Replay buffer, demonstrations, augmentation and packed batches of whole episodes."""
