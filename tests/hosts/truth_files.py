"""Truth files of a snapshot format, and their values as read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tcpwin.hosts import SnapshotFile

TRUTH = Path(__file__).resolve().parent / "truth"

# Text without a zero, which makes a file binary.
ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)


def read(format: str, name: str) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the samples of a truth file, and the lines that were not understood; it must be recognised."""
    file = SnapshotFile(TRUTH / format / name)
    assert file.format == format
    samples = list(file)
    return samples, [(line.number, line.text) for line in file.unknown.first]


def read_text(format: str, text: str) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the same of a text, in a format that is said and not recognised."""
    file = SnapshotFile(text.encode(), format=format)
    samples = list(file)
    return samples, [(line.number, line.text) for line in file.unknown.first]
