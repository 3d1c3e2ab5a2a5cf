"""Whole jobs: from tables and recordings to a folder of results."""
