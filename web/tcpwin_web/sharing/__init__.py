"""Answers for people who have a link and no token; on wish without the addresses."""
