"""Programs written in the language, ready to be planned."""
