"""Generate Python types and JSON Schema from the engine's tables.

The tables in Rust are the only hand-written lists of fields, events, series, limits and budget items. `just model`
writes everything derived from them; with ``--check`` the script writes nothing, lists the stale files and exits with 1.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tcpwin import _engine

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "tcpwin" / "model"
SCHEMA = ROOT / "tcpwin" / "analysis" / "schema.json"
GENERATED = "generated from the engine's tables by `just model`"
KINDS = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}
LARGEST = {"port": 65_535, "octet": 255, "shift": 14}
WIDTH = 120

Row = tuple[str, str, list[str], list[str], str]
"""Name, kind, marks, choices and documentation of a field."""


def field_schema(row: Row) -> dict[str, Any]:
    """Return the JSON Schema of a field."""
    _, kind, marks, choices, doc = row
    schema: dict[str, Any] = {"description": doc}
    is_nullable = "nullable" in marks
    if choices:
        values: list[Any] = [int(each) for each in choices] if kind == "int" else list(choices)
        return schema | {"enum": [*values, None] if is_nullable else values}
    schema["type"] = [KINDS[kind], "null"] if is_nullable else KINDS[kind]
    if kind in ("int", "float") and "signed" not in marks:
        schema["minimum"] = 1 if "positive" in marks else 0
    largest = [LARGEST[mark] for mark in marks if mark in LARGEST]
    return schema | {"maximum": min(largest)} if largest else schema


def document_schema() -> str:
    """Return the schema of the analysis document, its generated parts brought up to date."""
    document = json.loads(SCHEMA.read_text(encoding="utf8"))
    definitions = document["$defs"]
    definitions["event"] = json.loads(_engine.EVENT_SCHEMA)
    for group in ("connection", "direction"):
        entry = definitions[group]
        fields = {row[0]: field_schema(row) for row in _engine.field_table(group)}
        # What is nested, and what is only written on request, is described by hand.
        nested = {name: value for name, value in entry["properties"].items() if not _is_plain(value)}
        always = [name for name in entry["required"] if name in nested]
        entry["required"] = [*fields, *always]
        entry["properties"] = fields | nested
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _is_plain(schema: dict[str, Any]) -> bool:
    return "$ref" not in schema and schema.get("type") != "array" and "only where" not in schema.get("description", "")


def python_type(kind: str, *, is_nullable: bool) -> str:
    """Return a field's annotation."""
    return f"{kind} | None" if is_nullable else kind


def event_class() -> str:
    """Return the module of `Event`."""
    fields = json.loads(_engine.EVENT_SCHEMA)["properties"]
    kinds = {"integer": "int", "string": "str", "array": "tuple[str, ...]"}
    lines = [f'"""What happened at one segment: {GENERATED}."""', "", "from dataclasses import dataclass", "", ""]
    lines += ["@dataclass(frozen=True, slots=True)", "class Event:"]
    lines += ['    """What happened at one segment.', "", "    Attributes:"]
    for name, schema in fields.items():
        lines += _wrapped(f"{name}: {schema['description']}", indent=8, hanging=12)
    lines += ['    """', ""]
    for name, schema in fields.items():
        choices, kind = schema.get("enum", ()), schema.get("type", "string")
        is_nullable = None in choices or isinstance(kind, list)
        annotation = python_type(kinds[kind[0] if isinstance(kind, list) else kind], is_nullable=is_nullable)
        lines.append(f"    {name}: {annotation}{' = None' if is_nullable else ''}")
    return "\n".join(lines) + "\n"


def direction_class() -> str:
    """Return the module of `DirectionFields`."""
    lines = [f'"""The measured fields of a direction: {GENERATED}."""', "", "from dataclasses import dataclass", "", ""]
    lines += ["# Comparison, repr and __init__ would take 4 ms of every start, and only the engine makes one."]
    lines += ["@dataclass(frozen=True, init=False, repr=False, eq=False)", "class DirectionFields:"]
    lines += ['    """The measured fields of a direction; None where the capture cannot say.', "", "    Attributes:"]
    rows = _plain_rows("direction")
    for name, _, _, _, doc in rows:
        lines += _wrapped(f"{name}: {doc}", indent=8, hanging=12)
    lines += ['    """', ""]
    lines += [f"    {name}: {python_type(kind, is_nullable='nullable' in marks)}" for name, kind, marks, _, _ in rows]
    return "\n".join(lines) + "\n"


def connection_class() -> str:
    """Return the module of `ConnectionFields`."""
    lines = [f'"""The measured fields of a connection: {GENERATED}."""', ""]
    lines += ["from collections.abc import Mapping", "from typing import Any", "", ""]
    lines += ["class ConnectionFields:"]
    lines += ['    """The measured fields of a connection, each read from the engine when it is first used."""', ""]
    lines += ["    _fields: Mapping[str, Any]"]
    for name, kind, marks, _, doc in _plain_rows("connection"):
        annotation = python_type(kind, is_nullable="nullable" in marks)
        lines += ["", "    @property", f"    def {name}(self) -> {annotation}:"]
        lines += _wrapped(f'"""{doc}"""', indent=8, hanging=8)
        lines += [f'        value: {annotation} = self._fields["{name}"]', "        return value"]
    return "\n".join(lines) + "\n"


def _plain_rows(group: str) -> list[Row]:
    return [row for row in _engine.field_table(group) if "composed" not in row[2]]


def _wrapped(text: str, *, indent: int, hanging: int) -> list[str]:
    # Ruff's formatter leaves docstrings alone, so that they are wrapped here.
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


def outputs() -> dict[Path, str]:
    """Return the text of every generated file."""
    return {
        MODEL / "event.py": event_class(),
        MODEL / "direction.py": direction_class(),
        MODEL / "connection.py": connection_class(),
        SCHEMA: document_schema(),
    }


def stale(files: dict[Path, str]) -> Iterable[Path]:
    """Yield the files that differ from what the tables imply."""
    for path, text in files.items():
        if not path.exists() or path.read_text(encoding="utf8") != text:
            yield path


def main(arguments: list[str]) -> int:
    """Write the stale files, or list them with ``--check``."""
    found = list(stale(files := outputs()))
    for path in found:
        print(path.relative_to(ROOT))
        if "--check" not in arguments:
            path.write_text(files[path], encoding="utf8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
