"""Reading what `ss` prints: its columns, its tokens, their values."""
