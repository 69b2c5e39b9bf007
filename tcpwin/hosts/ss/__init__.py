"""Parsing of `ss` output: its columns, its tokens, their values."""
