"""What the kernels of hosts counted, as lines for a terminal."""
