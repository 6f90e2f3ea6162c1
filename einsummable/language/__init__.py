"""The language: text to syntax tree (`parser`), syntax tree and shapes to EinGraph (`elaborate`)."""
