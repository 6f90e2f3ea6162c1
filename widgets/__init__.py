"""Widgets for the notebook, installed as ``einsummable.widgets``."""
