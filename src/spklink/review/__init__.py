"""The page on which people listen and decide."""
