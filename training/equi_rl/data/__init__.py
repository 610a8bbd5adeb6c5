"""Replay buffer, demonstrations, augmentation and packed batches of whole episodes."""
