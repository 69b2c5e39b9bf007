"""The formats of snapshots, each one module with a `FORMAT`."""
