"""The benchmark: captures → runs of each tool → rows with their bounds → tables."""
