"""Conversations with more than two states: lists that may be wrong, and tracks of any number."""
