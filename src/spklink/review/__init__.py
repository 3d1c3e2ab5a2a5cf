"""A local page on which people listen and decide."""
