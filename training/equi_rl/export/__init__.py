# SPDX-License-Identifier: MIT
"""From a trained actor to a model folder: weights, contract, card."""
