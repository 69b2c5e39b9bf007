"""The definition of a rule, and the registry of rules.

Each module of `tcpwin.limits.rules` has one `RULE`; its docstring is the rule's page. Other packages add rules through
the entry point group `tcpwin.rules`, each naming a module with a `RULE`.
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
from tcpwin.limits.tables import FAULTS
from tcpwin.model import RULES

if TYPE_CHECKING:
    from tcpwin.limits.case import Case

ENTRY_POINTS = "tcpwin.rules"
SCOPES = ("direction", "connection", "capture")
_CODE = re.compile(r"[A-Z]{2,4}\d{3}")

Condition = tuple[str, str, float | str | bool | None]
"""A field, an operator (``>=``, ``<=``, ``>``, ``<`` or ``==``) and a value, by which the engine selects connections.

A field without a value matches only ``== None``."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number that a rule compares with and that users can set.

    Attributes:
        default: the value unless a user sets another.
        unit: ``ns``, ``bytes``, ``bps``, ``share``, ``count`` or ``times``.
        reason: the reason for the default, with its source; a sentence.
    """

    default: float
    unit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        code: ``TW`` and three digits; the first digit is the group.
        name: the pattern found, in kebab-case, never the remedy: ``zero-window-stall``.
        title: a short description.
        severity: severity of its findings, unless one overrides it.
        scope: ``direction`` (judged for each direction with data that meets `when`), ``connection`` or ``capture``
            (judged once).
        when: conditions on fields of the direction or connection, all of which must hold for `judge` to be called. A
            threshold's name in braces is replaced by its value: ``("zero_window_ns", ">=", "{stall_ns}")``.
        asks: selections of a rule of the capture: scope and conditions of each of `Case.asked`, evaluated for all rules
            in one walk over the connections.
        counts: attributes of the capture (`Analysis.capture`). A rule of the capture with `asks` or `counts` is judged
            only if one of them selects or counts something.
        thresholds: thresholds by name.
        judge: the function from a case to findings.
        page: the module's docstring, in Markdown.
        needs_hosts: whether the rule needs host snapshots; it is skipped without them.
        limits: the limits, of `tcpwin.limits.LIMITS`, whose time its findings claim. Empty if the findings cost a
            sender no time, or time of any kind.
        yields_to: codes of more specific rules for the same time: this rule claims only what they leave.
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
    counts: tuple[str, ...] = ()
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    needs_hosts: bool = False

    @property
    def outline(self) -> Outline:
        """What decides whether the rule is judged."""
        return Outline(
            code=self.code,
            scope=self.scope,
            when=self.when,
            asks=self.asks,
            counts=self.counts,
            defaults={name: each.default for name, each in self.thresholds.items()},
            has_limits=bool(self.limits),
            is_fault=not FAULTS.isdisjoint(self.limits),
            yields_to=self.yields_to,
            needs_hosts=self.needs_hosts,
            source=self,
        )


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides whether a rule is judged, without its module.

    Attributes:
        defaults: the default of each threshold.
        has_limits: whether `Rule.limits` names any.
        is_fault: whether one of them is a fault.
        source: the rule, or the name of its module in `tcpwin.limits.rules`.
    """

    code: str
    scope: str
    when: tuple[Condition, ...]
    asks: tuple[tuple[str, tuple[Condition, ...]], ...]
    counts: tuple[str, ...]
    defaults: Mapping[str, float]
    has_limits: bool
    is_fault: bool
    yields_to: tuple[str, ...]
    needs_hosts: bool
    source: Rule | str

    @property
    def rule(self) -> Rule:
        """The rule, whose module is imported if it has not been."""
        if not isinstance(self.source, str):
            return self.source
        rule: Rule = import_module(f"tcpwin.limits.rules.{self.source}").RULE
        return rule

    def questions(self, settings: Mapping[str, float]) -> list[tuple[str, list[Condition]]]:
        """Return `when` or `asks` with the thresholds in effect, as scope and conditions of each question."""
        questions = self.asks if self.scope == "capture" else ((self.scope, self.when),)
        return [(scope, [_in_force(each, settings) for each in conditions]) for scope, conditions in questions]


def _in_force(condition: Condition, settings: Mapping[str, float]) -> Condition:
    name, op, value = condition
    return name, op, settings[str(value)[1:-1]] if _is_named(value) else value


def _is_named(value: float | str | bool | None) -> bool:
    return isinstance(value, str) and value.startswith("{") and value.endswith("}")


@cache
def all_rules() -> dict[str, Rule]:
    """Return all rules, sorted by code.

    Raises:
        ValueError: two rules have the same code or name, or a code is malformed.
    """
    modules: list[Any] = [import_module(f"tcpwin.limits.rules.{name}") for name in _module_names()]
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


@cache
def all_outlines() -> list[Outline]:
    """Return the outlines of all rules, sorted by code, without importing the modules of rules if `just model` has run.

    Raises:
        ValueError: as for `all_rules`.
    """
    plugins = load_plugins(ENTRY_POINTS)
    if plugins or {row["source"] for row in RULES} != set(_module_names()):
        return [rule.outline for rule in all_rules().values()]
    return [Outline(**row) for row in RULES]


def _module_names() -> list[str]:
    from tcpwin.limits import rules as package

    return [each.name for each in iter_modules(package.__path__) if not each.name.startswith("_")]
