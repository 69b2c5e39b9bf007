"""Bytes that arrive: told what they are, held to their limits, stored without what was said in the packets."""
