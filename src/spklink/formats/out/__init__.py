"""Labels of speech in formats of others, one file a format."""
