"""What people heard and decided."""
