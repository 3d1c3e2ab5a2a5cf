"""From log-likelihood-ratios to who is on which channel, and how sure that is."""
