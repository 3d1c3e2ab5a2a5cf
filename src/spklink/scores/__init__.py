"""Scores between sides: which are needed, in and out of files."""
