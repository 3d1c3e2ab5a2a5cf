"""Posterior inference: one small file a method, all on the same kind of problem (`network`)."""
