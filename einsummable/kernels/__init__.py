"""What a site computes: one einsummable on one set of blocks.  All that an engine needs of the language."""
