"""Replace addresses in shared results: a prefix-preserving mapping, and its application to documents."""
