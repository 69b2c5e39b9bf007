"""What a rule is, and where rules come from.

Each module of `tcpwin.limits.rules` has one `RULE`; its docstring is the rule's page. Other packages add rules by the
entry point group `tcpwin.rules`, each naming a module with a `RULE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from tcpwin.limits.finding import Finding, Severity
from tcpwin.limits.plugins import load_plugins

if TYPE_CHECKING:
    from tcpwin.limits.case import Case

ENTRY_POINTS = "tcpwin.rules"
SCOPES = ("direction", "connection", "capture")
_CODE = re.compile(r"[A-Z]{2,4}\d{3}")

Condition = tuple[str, str, float | str | bool | None]
"""A field, ``>=``, ``<=``, ``>``, ``<`` or ``==``, and a value: what the engine can pick connections by, cheaply.

A field without a value meets ``== None`` only."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that a rule compares with, which users can set.

    Attributes:
        default: its value where nobody set it.
        unit: ``ns``, ``bytes``, ``bps``, ``share``, ``count`` or ``times``.
        reason: why the default is what it is; a sentence with its source.
    """

    default: float
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        code: ``TW`` and three digits; the first is the group's.
        name: the pattern found, in kebab-case, never the remedy: ``zero-window-stall``.
        title: what it finds, in a few words.
        severity: of its findings, unless one says otherwise.
        scope: ``direction``: judged for each direction with data that meets `when`; ``connection``; ``capture``: once.
        when: conditions on fields of the direction (or connection), all of which must hold for `judge` to be asked. A
            threshold's name in braces stands for its value: ``("zero_window_ns", ">=", "{stall_ns}")``.
        asks: of a rule of the capture, what it picks connections or directions by: scope and conditions of each
            `Case.asked`, which one walk over the connections answers for all rules.
        thresholds: by name.
        judge: from a case to findings.
        page: the module's docstring, in Markdown.
        needs_hosts: it has nothing to say without snapshots of a host, and is not asked then.
        limits: the limits that its findings are about, of `tcpwin.limits.LIMITS`: the time they cost is of those, and
            their verdicts. None for what costs a sender no time, or time of any kind.
        yields_to: codes of rules that say more exactly where the same time went: this rule's cost is what they leave.
    """

    code: str
    name: str
    title: str
    severity: Severity
    scope: str
    judge: Callable[[Case], Iterator[Finding]]
    page: str
    when: tuple[Condition, ...] = ()
    asks: tuple[tuple[str, tuple[Condition, ...]], ...] = ()
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    needs_hosts: bool = False

    def questions(self, settings: Mapping[str, float]) -> list[tuple[str, list[Condition]]]:
        """`when`, or what the rule asks, with the thresholds in force: of each question its scope and conditions."""
        questions = self.asks if self.scope == "capture" else ((self.scope, self.when),)
        return [(scope, [_in_force(each, settings) for each in conditions]) for scope, conditions in questions]


def _in_force(condition: Condition, settings: Mapping[str, float]) -> Condition:
    name, op, value = condition
    return name, op, settings[str(value)[1:-1]] if _is_named(value) else value


def _is_named(value: float | str | bool | None) -> bool:
    return isinstance(value, str) and value.startswith("{") and value.endswith("}")


@cache
def all_rules() -> dict[str, Rule]:
    """All rules by code, in the order of their codes.

    Raises:
        ValueError: two rules have the same code or name, or a code is malformed.
    """
    from tcpwin.limits import rules as package

    modules: list[Any] = [
        import_module(f"{package.__name__}.{module.name}")
        for module in iter_modules(package.__path__)
        if not module.name.startswith("_")
    ]
    modules += load_plugins(ENTRY_POINTS)
    found: dict[str, Rule] = {}
    for module in modules:
        rule: Rule = module if isinstance(module, Rule) else module.RULE
        if not _CODE.fullmatch(rule.code) or rule.scope not in SCOPES:
            raise ValueError(
                f"rule {rule.code} ({rule.name}): a code is letters and three digits; a scope one of {SCOPES}"
            )
        if rule.code in found or any(rule.name == other.name for other in found.values()):
            raise ValueError(f"two rules are called {rule.code} or {rule.name}")
        found[rule.code] = rule
    return dict(sorted(found.items()))
