"""Truth files of a snapshot format, and the values read from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tcpwin.hosts import SnapshotFile

TRUTH = Path(__file__).resolve().parent / "truth"

# Text without NUL bytes, which would make a file binary.
ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300)


def read(format: str, name: str) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the samples of a truth file, which must be recognised, and the lines not understood."""
    file = SnapshotFile(TRUTH / format / name)
    assert file.format == format
    samples = list(file)
    return samples, [(line.number, line.text) for line in file.unknown.first]


def read_text(format: str, text: str) -> tuple[list[Any], list[tuple[int, str]]]:
    """Return the same for a text, in a given format."""
    file = SnapshotFile(text.encode(), format=format)
    samples = list(file)
    return samples, [(line.number, line.text) for line in file.unknown.first]
