"""What people heard and decided, and the page on which they do."""
