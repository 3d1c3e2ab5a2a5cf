"""Corpora as their publishers lay them out, turned into our tables."""
