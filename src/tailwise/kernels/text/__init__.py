"""Characters to numbers and back: terms of texts, rows in files."""
