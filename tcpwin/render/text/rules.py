"""Rules as text: the list, and a rule's page with its thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tcpwin.limits import Rule, Threshold, sections
from tcpwin.limits.defects import causes_of
from tcpwin.units import name_text

_SCOPES = {
    "direction": "checks each direction",
    "connection": "checks each connection",
    "capture": "checks the capture as a whole",
}

_SUFFIXES = {"bytes": "B", "bps": "bit"}
_TIMES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def render_rules(rules: Iterable[Rule]) -> Iterator[str]:
    """Render a line for each rule: code, name, severity, title."""
    listed = list(rules)
    width = max((len(rule.name) for rule in listed), default=0)
    for rule in listed:
        yield name_text(f"{rule.code}  {rule.name:<{width}}  {rule.severity!s:<7}  {rule.title}")


def _condition_text(name: str, operator: str, value: float | str | bool | None) -> str:
    return f"no {name}" if value is None else f"{name} {operator} {str(value).strip('{}')}"


def render_page(rule: Rule) -> Iterator[str]:
    """Render a rule's page: title, what it checks, its headings with texts, owners, and thresholds with reasons."""
    yield name_text(f"{rule.code} {rule.name}: {rule.title}")
    checked = _SCOPES[rule.scope]
    if rule.when:
        conditions = " and ".join(_condition_text(*condition) for condition in rule.when)
        checked += f" with {conditions}"
    yield name_text(f"{rule.severity}, {checked}")
    for heading, text in sections(rule.page).items():
        yield from ("", name_text(heading))
        yield from (f"  {name_text(line)}".rstrip() for line in text.splitlines())
    if rule.yields_to:
        yield from ("", "Counted once")
        yield f"  Time that one of these rules also claims is counted there only: {', '.join(rule.yields_to)}."
    if causes := causes_of(rule.code):
        yield from ("", "Known causes")
        for each in causes:
            yield name_text(f"  {each.title}. {each.fix}")
            yield from (name_text(f"    {source}") for source in each.sources)
    if rule.thresholds:
        yield from ("", "Thresholds")
        yield f"  Set with `tcpwin check --threshold {rule.code}.NAME=VALUE`."
        width = max(map(len, rule.thresholds))
        for name, threshold in rule.thresholds.items():
            yield name_text(f"  {name:<{width}}  {threshold_text(threshold)}: {threshold.reason}")


def threshold_text(threshold: Threshold) -> str:
    """Return a default with its unit, exactly and as ``--threshold`` accepts it."""
    value = threshold.default
    if threshold.unit == "ns":
        factor, unit = next((factor, unit) for factor, unit in _TIMES if not value % factor or factor == 1)
        return f"{value / factor:.15g}{unit}"
    if threshold.unit == "share":
        return f"{value * 100:.12g}%"
    return f"{value:.15g}{_SUFFIXES.get(threshold.unit, '')}"
