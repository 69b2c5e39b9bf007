"""Snapshot formats, one module with a `FORMAT` each."""
