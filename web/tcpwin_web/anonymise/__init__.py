"""Addresses replaced in what shared links show: a prefix-preserving mapping, and its application to documents."""
