"""From scores to log-likelihood-ratios, with labels or without."""
