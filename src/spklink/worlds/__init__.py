"""Databases with a known truth: scores, and sound."""
