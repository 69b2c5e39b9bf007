"""`Event` and its part of the JSON Schema, as the engine's table of an event's fields has them.

`python tests/analysis/event_table.py` writes both to their files.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import tcpwin
from tcpwin import _engine

FOLDER = Path(tcpwin.__file__).parent / "analysis"
SCHEMA, CLASS = FOLDER / "schema.json", FOLDER / "event.py"
HEAD = '''"""What happened at one segment. Written by tests/analysis/event_table.py from the engine's table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """What happened at one segment.

    Attributes:
'''
TYPES = {"integer": "int", "string": "str", "array": "tuple[str, ...]"}


def event_schema() -> dict[str, Any]:
    """The JSON Schema of an event."""
    schema: dict[str, Any] = json.loads(_engine.EVENT_SCHEMA)
    return schema


def document_schema() -> str:
    """Text of schema.json with the event as the engine has it."""
    document = json.loads(SCHEMA.read_text(encoding="utf8"))
    document["$defs"]["event"] = event_schema()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def event_class() -> str:
    """Text of event.py."""
    fields = event_schema()["properties"]
    lines = []
    for name, values in fields.items():
        doc = f"{name}: {values['description']}"
        lines += textwrap.wrap(doc, 120, initial_indent=" " * 8, subsequent_indent=" " * 12)
    lines += ['    """', ""]
    lines += [f"    {name}: {_annotation(values)}" for name, values in fields.items()]
    return HEAD + "\n".join(lines) + "\n"


def _annotation(values: dict[str, Any]) -> str:
    if "enum" in values:
        return "str | None = None" if None in values["enum"] else "str"
    if isinstance(values["type"], list):
        return f"{TYPES[values['type'][0]]} | None = None"
    return TYPES[values["type"]]


if __name__ == "__main__":
    SCHEMA.write_text(document_schema(), encoding="utf8")
    CLASS.write_text(event_class(), encoding="utf8")
