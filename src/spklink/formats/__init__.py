"""Files of others: one module a format."""
