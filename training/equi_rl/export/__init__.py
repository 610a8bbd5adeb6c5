"""From a trained actor to a model folder: weights, contract, card."""
