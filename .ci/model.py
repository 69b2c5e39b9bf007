"""Generate Python types, JSON Schema and tables of the documentation from the engine's tables and the rules.

The tables in Rust are the only hand-written lists of fields, events, series, limits and budget items. `just model`
writes everything derived from them; with ``--check`` the script writes nothing, lists the stale files and exits with 1.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from tcpwin import _engine

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "tcpwin" / "model"
RULE_MODULES = ROOT / "tcpwin" / "limits" / "rules"
SCHEMAS = [ROOT / "tcpwin" / stage / "schema.json" for stage in ("analysis", "limits", "pairing")]
DOCUMENTS = [ROOT / "tcpwin" / "docs" / name for name in ("commands.md", "time-budget.md")]
DASHBOARD = ROOT / "web" / "tcpwin_web" / "api" / "model.py"
GENERATED = "generated from the engine's tables by `just model`"
KINDS = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}
DIRECTIONS = ["a_to_b", "b_to_a"]
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


def verdict_choices() -> dict[str, list[str]]:
    """Return the values of the kinds of a verdict's fields that have a fixed set."""
    return {
        "limit": [row["name"] for row in _engine.limits()],
        "confidence": _engine.CONFIDENCES[::-1],
        # Only findings may belong to an application or a host of either end.
        "owner": [each for each in _engine.OWNERS if each not in ("application", "host")],
        "side": _engine.ENDS,
        "direction": DIRECTIONS,
    }


def verdict_schema() -> dict[str, Any]:
    """Return the JSON Schema of a verdict's fields."""
    numbers = {
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "time": {"type": "integer", "minimum": 0},
        "bool": {"type": "boolean"},
    }
    properties: dict[str, Any] = {}
    for row in _engine.verdict_fields():
        kind, is_nullable = row["kind"], row["is_nullable"]
        schema: dict[str, Any] = {"description": row["doc"]}
        if kind in (choices := verdict_choices()):
            schema["enum"] = [*choices[kind], None] if is_nullable else choices[kind]
        elif kind == "text":
            schema |= {"type": ["string", "null"]} if is_nullable else {"type": "string", "minLength": 1}
        else:
            schema |= numbers[kind]
        properties[row["name"]] = schema
    return {"required": list(properties), "properties": properties}


def document_schema(path: Path) -> str:
    """Return a document's schema with its generated parts brought up to date."""
    document = json.loads(path.read_text(encoding="utf8"))
    definitions = document["$defs"]
    definitions["verdict"] |= verdict_schema()
    definitions["spending"]["properties"]["items_ns"] |= {
        "properties": {
            row["name"]: {"description": row["doc"], "type": "integer", "minimum": 1} for row in _engine.budget_items()
        },
        "additionalProperties": False,
    }
    if "event" in definitions:
        definitions["event"] = json.loads(_engine.EVENT_SCHEMA)
        for group in ("connection", "direction"):
            entry = definitions[group]
            fields = {row[0]: field_schema(row) for row in _engine.field_table(group)}
            # Nested members, and those written only on request, are described by hand.
            nested = {name: value for name, value in entry["properties"].items() if not _is_plain(value)}
            always = [name for name in entry["required"] if name in nested]
            whole, optional = field_runs(group)
            entry["required"] = [*whole, *always]
            entry["dependentRequired"] = {
                name: [other for other in run if other != name] for run in optional for name in run if len(run) > 1
            }
            entry["properties"] = fields | nested
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def field_runs(kind: str) -> tuple[list[str], list[list[str]]]:
    """Return the fields of groups that are always written, and of each of those that may be omitted."""
    rows = {row[0]: row for row in _engine.field_table(kind)}

    def may_be_absent(row: Row) -> bool:
        return "nullable" in row[2] or (row[1] != "str" and "positive" not in row[2])

    whole: list[str] = []
    optional: list[list[str]] = []
    for group, _, names in _engine.field_groups(kind):
        if group == "budget":
            optional += [[name] for name in names]
        elif all(may_be_absent(rows[name]) for name in names):
            optional.append(names)
        else:
            whole += names
    return whole, optional


def _is_plain(schema: dict[str, Any]) -> bool:
    return "$ref" not in schema and schema.get("type") != "array" and "only where" not in schema.get("description", "")


def python_type(kind: str, *, is_nullable: bool) -> str:
    """Return a field's annotation."""
    return f"{kind} | None" if is_nullable else kind


def event_class() -> str:
    """Return the module of `Event`."""
    fields = json.loads(_engine.EVENT_SCHEMA)["properties"]
    kinds = {"integer": "int", "string": "str", "array": "tuple[str, ...]"}
    lines = [f'"""The events of one segment: {GENERATED}."""', "", "from dataclasses import dataclass", "", ""]
    lines += ["@dataclass(frozen=True, slots=True)", "class Event:"]
    lines += ['    """The events of one segment.', "", "    Attributes:"]
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
    lines += ['    """The measured fields of a direction; None if the capture lacks the value.', "", "    Attributes:"]
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


def names_module() -> str:
    """Return the module of the names that users pass and read, as types."""
    choices = verdict_choices()
    listed = {
        "SeriesName": (_engine.SERIES_NAMES, "A series of a connection."),
        "DirectionName": (DIRECTIONS, "A direction of data: from a to b, or from b to a."),
        "LimitName": (choices["limit"], "A limit of a connection."),
        "ItemName": (_engine.BUDGET_ITEMS, "An item of the time budget."),
        "ConfidenceName": (choices["confidence"], "The confidence of a verdict or a finding."),
        "OwnerName": (choices["owner"], "The owner of a limit, who can change it."),
        "EndName": (choices["side"], "An end of a connection, by its role."),
    }
    lines = [f'"""Names that users pass and read, as types: {GENERATED}."""', ""]
    lines += ["from typing import Literal, TypeAlias"]
    for name, (values, doc) in listed.items():
        one_line = f"{name}: TypeAlias = Literal[{', '.join(json.dumps(each) for each in values)}]"
        if len(one_line) <= WIDTH:
            lines += ["", one_line]
        else:
            lines += ["", f"{name}: TypeAlias = Literal[", *(f"    {json.dumps(each)}," for each in values), "]"]
        lines.append(f'"""{doc}"""')
    return "\n".join(lines) + "\n"


def columns_module() -> str:
    """Return the module of the column sets that the tables mark."""
    lines = [f'"""Column sets, by group and mark: {GENERATED}."""', ""]
    lines += ["MARKED: dict[tuple[str, str], tuple[str, ...]] = {"]
    for group in ("connection", "direction"):
        for mark in ("list", "brief"):
            names = [row[0] for row in _engine.field_table(group) if mark in row[2]]
            lines += [f'    ("{group}", "{mark}"): (', *(f'        "{name}",' for name in names), "    ),"]
    lines += ["}", '"""Fields that the dashboard lists, and those of short answers to agents."""', ""]
    lines += ["TEXTS: dict[str, frozenset[str]] = {"]
    for group in ("connection", "direction"):
        names = [row[0] for row in _engine.field_table(group) if row[1] == "str"]
        lines += [
            f'    "{group}": frozenset(',
            "        {",
            *(f'            "{each}",' for each in names),
            "        }",
            "    ),",
        ]
    lines += ["}", '"""Fields that hold text."""']
    return "\n".join(lines) + "\n"


def dashboard_module() -> str:
    """Return the module of the dashboard's pydantic model of a verdict."""
    annotations = {
        "limit": "LimitName",
        "confidence": "ConfidenceName",
        "owner": "OwnerName",
        "side": "EndName",
        "direction": "DirectionName",
        "share": "float",
        "time": "int",
        "bool": "bool",
        "text": "str",
    }
    names = sorted(each for each in annotations.values() if each.endswith("Name"))
    lines = [f'"""The verdict in responses of the API: {GENERATED}."""', ""]
    lines += ["from pydantic import BaseModel, ConfigDict", ""]
    lines += [f"from tcpwin.model import {', '.join(names)}", "", "", "class Verdict(BaseModel):"]
    lines += ['    """Verdict on a connection: its limit, the cost, and who can fix it."""', ""]
    lines += ['    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)', ""]
    for row in _engine.verdict_fields():
        annotation = annotations[row["kind"]] + (" | None" if row["is_nullable"] else "")
        lines += [f"    {row['name']}: {annotation}"]
        lines += _wrapped(f'"""{row["doc"]}"""', indent=4, hanging=4)
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


def items_table() -> str:
    """Return the time budget's items as a table in Markdown."""
    lines = ["| group | field | meaning | confidence |", "|---|---|---|---|"]
    for row in _engine.budget_items():
        doc = row["doc"].removesuffix(".")
        lines.append(f"| {row['group']} | `budget_{row['name']}_ns` | {doc[0].lower()}{doc[1:]} | {row['basis']} |")
    return "\n".join(["", "", *lines, "", ""])


def page_text(path: Path) -> str:
    """Return a page of the documentation with its generated parts, which markers enclose, brought up to date."""
    parts = {
        "limits": ", ".join(f"`{row['name']}`" for row in _engine.limits()),
        "budget items": items_table(),
    }
    marked = re.compile(r"(<!-- model: ([a-z ]+) -->).*?(<!-- end -->)", re.DOTALL)
    return marked.sub(lambda found: found[1] + parts[found[2]] + found[3], path.read_text(encoding="utf8"))


def rules_module() -> str:
    """Return the module of the rules' outlines."""
    outlines = [
        (import_module(f"tcpwin.limits.rules.{path.stem}").RULE.outline, path.stem)
        for path in RULE_MODULES.glob("[!_]*.py")
    ]
    lines = ['"""The conditions under which each rule is judged: generated from the rules by `just model`."""', ""]
    lines += ["from typing import Any", "", "RULES: tuple[dict[str, Any], ...] = ("]
    for outline, module in sorted(outlines, key=lambda each: each[0].code):
        row = {name: getattr(outline, name) for name in outline.__slots__} | {"source": module}
        lines.append("    {")
        lines += [f'        "{name}": {_literal(value, len(name) + 12)},' for name, value in row.items()]
        lines.append("    },")
    return "\n".join([*lines, ")"]) + "\n"


def _literal(value: Any, column: int, indent: int = 8) -> str:
    """Return a value as the formatter writes it from a column on, in a block with an indent."""
    if isinstance(value, tuple):
        opening, closing, parts = "(", ")", [("", each) for each in value]
    elif isinstance(value, dict):
        opening, closing, parts = "{", "}", [(f"{json.dumps(key)}: ", each) for key, each in value.items()]
    else:
        return json.dumps(value) if isinstance(value, str) else repr(value)
    one_line = ", ".join(f"{key}{_literal(each, -9999)}" for key, each in parts)
    one_line += "," * (isinstance(value, tuple) and len(value) == 1)
    if column + len(f"{opening}{one_line}{closing},") <= WIDTH:
        return f"{opening}{one_line}{closing}"
    inner = indent + 4
    lines = [f"{' ' * inner}{key}{_literal(each, inner + len(key), inner)}," for key, each in parts]
    return "\n".join([opening, *lines, f"{' ' * indent}{closing}"])


def outputs() -> dict[Path, str]:
    """Return the text of every generated file."""
    return {
        MODEL / "event.py": event_class(),
        MODEL / "direction.py": direction_class(),
        MODEL / "connection.py": connection_class(),
        MODEL / "names.py": names_module(),
        MODEL / "columns.py": columns_module(),
        MODEL / "rules.py": rules_module(),
        DASHBOARD: dashboard_module(),
        **{path: document_schema(path) for path in SCHEMAS},
        **{path: page_text(path) for path in DOCUMENTS},
    }


def stale(files: dict[Path, str]) -> Iterable[Path]:
    """Yield the files that no longer match the tables."""
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
