"""Access control: who may call, from where, how often, and what a page may load."""
