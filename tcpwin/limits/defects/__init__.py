"""The catalogue of known defects of kernels, stacks, programs and boxes, one TOML file for each.

In: the files beside this module. Out: Defect values. A defect has a signature on the wire (`when`: conditions on a
direction) or is a known cause of what rules find (`rules`); host records can confirm it by version, setting or counter.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
PARTS = ("kernel", "stack", "program", "box")


@dataclass(frozen=True, slots=True)
class Defect:
    """A known defect.

    Attributes:
        name: the file's name without its ending.
        title: what happens, in one line.
        part: what has the defect: one of `PARTS`.
        side: the end that has it, ``sender`` or ``receiver`` of the affected direction; None for a box or a program.
        from_version, before_version: affected Linux versions: the first, and the first that is not; None if open.
        settings: sysctl values that the defect needs.
        counters: counters that grow.
        when: conditions on the affected direction.
        rules: codes of rules whose findings it causes.
        signature, effect, fix, workaround: sentences.
        sources: addresses, commits and documents.
    """

    name: str
    title: str
    part: str
    signature: str
    effect: str
    fix: str
    workaround: str
    sources: tuple[str, ...]
    side: str | None = None
    from_version: str | None = None
    before_version: str | None = None
    settings: Mapping[str, int] = field(default_factory=dict)
    counters: tuple[str, ...] = ()
    when: tuple[tuple[str, str, float | str | bool | None], ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def is_of_host(self) -> bool:
        """Whether records of the host can confirm or refute it."""
        return bool(self.from_version or self.before_version or self.settings or self.counters)


def read_defect(path: Path) -> Defect:
    """Read a defect's file.

    Raises:
        ValueError: the file is not TOML, or lacks a key or has an unknown one.
    """
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf8"))
    versions = table.pop("versions", {})
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    values.pop("when", None)
    try:
        defect = Defect(
            name=path.stem,
            from_version=versions.pop("from", None),
            before_version=versions.pop("before", None),
            when=tuple((name, op, value) for name, op, value in table.get("when", ())),
            **values,
        )
    except TypeError as error:
        raise ValueError(f"{path.name}: {error}") from None
    if versions or defect.part not in PARTS or not defect.sources or not (defect.when or defect.rules):
        raise ValueError(f"{path.name}: a part of {PARTS}, sources, and `when` or `rules` are needed")
    return defect


@cache
def known_defects() -> tuple[Defect, ...]:
    """Return the catalogue, sorted by name."""
    return tuple(read_defect(path) for path in sorted(FOLDER.glob("*.toml")))


def causes_of(code: str) -> tuple[Defect, ...]:
    """Return the defects that are known to cause what a rule finds."""
    return tuple(each for each in known_defects() if code in each.rules)
