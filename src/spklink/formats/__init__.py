"""Vectors of sides in files of others: one file a format."""
