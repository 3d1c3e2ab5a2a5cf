"""How good scores and probabilities are, where the truth is known."""
