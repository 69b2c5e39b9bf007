"""Lines for a terminal."""
