"""Results for people with a link instead of a token, optionally without the addresses."""
