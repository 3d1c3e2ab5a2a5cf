"""Files of others, as they come: one module a format."""
