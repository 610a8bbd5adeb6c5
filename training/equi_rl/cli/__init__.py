"""Commands: one file per command of the training package."""
