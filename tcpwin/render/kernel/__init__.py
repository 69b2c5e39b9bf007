"""Data from the kernels of hosts, as lines for a terminal."""
