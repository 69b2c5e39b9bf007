"""The lab's Linuxes, as options name them: a help text must not wait for the lab to load."""

from __future__ import annotations

SERIES = ("6.1", "6.12", "7.3")
