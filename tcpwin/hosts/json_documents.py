"""Consecutive JSON documents in the lines of a file, each on one or many lines.

In: lines. Out: values, each with its first line. Other lines are rejected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tcpwin.hosts.lines import Lines

MAX_CHARACTERS = 1 << 27
"""Longest accepted document, since it is held in memory."""
_TRIES = 16
"""Attempts to find the end of a document before the end of the file."""


def json_documents(lines: Lines) -> Iterator[tuple[Any, int]]:
    """Yield each value with the number of its first line."""
    document = _Document()
    for text in lines:
        if not document.parts and not text.strip():
            continue
        if not document.parts and text.lstrip()[:1] != "{":
            lines.reject(text)
            continue
        for value in document.add(text, lines.number):
            yield value, document.line
        if document.is_too_long:
            lines.reject(document.first, number=document.line)
            document = _Document()
    for value in document.finish():
        yield value, document.line
    if document.parts:
        lines.reject(document.first, number=document.line)


class _Document:
    """Lines of an unfinished document."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.first = ""
        self.line = 0
        self.is_too_long = False
        self._characters = 0
        self._tries = 0

    def add(self, text: str, number: int) -> list[Any]:
        """Add a line; return the documents that end with it."""
        if not self.parts:
            self.first, self.line = text, number
            self._characters = self._tries = 0
        self.parts.append(text)
        self._characters += len(text)
        self.is_too_long = self._characters > MAX_CHARACTERS
        # Its last line is an unindented brace; a document or event on one line ends with one.
        is_end = text.rstrip() == "}" or (len(self.parts) == 1 and text.rstrip().endswith("}"))
        if not is_end or self._tries == _TRIES:
            return []
        self._tries += 1
        return self.finish()

    def finish(self) -> list[Any]:
        """Return the documents in the lines so far; keep the lines if there is none."""
        values = _decode("".join(self.parts)) if self.parts else []
        if values:
            self.parts = []
        return values


def _decode(text: str) -> list[Any]:
    """Return the consecutive values in a text, or none if part of it is not JSON."""
    decoder = json.JSONDecoder()
    values = []
    position = 0
    text = text.rstrip()
    try:
        while position < len(text):
            value, position = decoder.raw_decode(text, position)
            values.append(value)
            while position < len(text) and text[position].isspace():
                position += 1
    except (ValueError, RecursionError):
        return []
    return values
