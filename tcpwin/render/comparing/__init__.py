"""Two captures, or a capture and a reference, side by side as lines for a terminal."""
