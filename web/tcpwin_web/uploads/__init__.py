"""Arriving files: recognise them, enforce limits, and store them without payloads."""
