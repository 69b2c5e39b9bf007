"""`tcpwin rules`, `explain` and `fields`: the rules of `check` and the contents of documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.io import complain, page
from tcpwin.errors import TcpwinError

if TYPE_CHECKING:
    from tcpwin.limits import Rule, Threshold

_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE]([+-]?[0-9]{1,2}))? ?([^\d\s]*)")
_UNITS: dict[str, dict[str, int | Fraction]] = {
    "ns": {
        "": 1,
        "ns": 1,
        "us": 1_000,
        "µs": 1_000,
        "ms": 1_000_000,
        "s": 1_000_000_000,
        "min": 60_000_000_000,
        "h": 3_600_000_000_000,
    },
    "bytes": {
        "": 1,
        "B": 1,
        "kB": 1000,
        "MB": 1000**2,
        "GB": 1000**3,
        "KiB": 1024,
        "MiB": 1024**2,
        "GiB": 1024**3,
    },
    "bps": {
        "": 1,
        "bit": 1,
        "kbit": 1000,
        "Mbit": 1000**2,
        "Gbit": 1000**3,
    },
    "share": {"": 1, "%": Fraction(1, 100)},
    "count": {"": 1},
    "times": {"": 1},
}
threshold_option = click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=completion.thresholds,
    help="Set a threshold: TW201.stall_ns=500ms.",
)
_EXAMPLES = {"ns": "500ms", "bytes": "64KiB", "bps": "10Mbit", "share": "0.1 or 10%", "count": "3", "times": "1.5"}


def load_rules() -> dict[str, Rule]:
    """Return all rules by code.

    Raises:
        TcpwinError: the module of a rule cannot be used, for any reason; the package is named if the rule is from
            another one.
    """
    from tcpwin.limits import all_rules

    try:
        return all_rules()
    except Exception as error:
        raise TcpwinError(f"rules cannot be loaded{_culprit()}: {type(error).__name__}: {error}") from error


def _culprit() -> str:
    """Return the first entry point that cannot be loaded or has no rule."""
    from importlib.metadata import entry_points

    from tcpwin.limits import ENTRY_POINTS, Rule

    others = list(entry_points(group=ENTRY_POINTS))
    for each in others:
        try:
            loaded = each.load()
            is_sound = isinstance(loaded, Rule) or isinstance(loaded.RULE, Rule)
        except Exception:  # noqa: BLE001 (another package's module may raise anything)
            is_sound = False
        if not is_sound:
            package = f" of the package {each.dist.name}" if each.dist is not None else ""
            return f", by the entry point {each.name} = {each.value}{package}"
    packages = sorted({each.dist.name for each in others if each.dist is not None})
    return f" (packages that bring rules: {', '.join(packages)})" if packages else ""


def find_rule(name: str) -> Rule | None:
    """Return the rule with a code or name, in any letter case."""
    rules = load_rules()
    by_name = {rule.name: rule for rule in rules.values()}
    return rules.get(name.upper()) or by_name.get(name.lower())


def nearest(name: str) -> str:
    """Name the rules whose code or name resembles a word, as the end of a sentence."""
    from difflib import get_close_matches

    rules = load_rules().values()
    words = {rule.code.lower(): rule for rule in rules} | {rule.name: rule for rule in rules}
    close = get_close_matches(name[:100].lower(), words, n=1, cutoff=0.5)
    if not close:
        return "`tcpwin rules` lists them"
    rule = words[close[0]]
    return f"did you mean {rule.code} ({rule.name})?"


def rules_about(words: str) -> list[Rule]:
    """Return the rules whose name or title contains all of these words."""
    wanted = re.findall(r"\w+", words.lower())
    return [
        rule
        for rule in load_rules().values()
        if wanted and all(each in f"{rule.name} {rule.title.lower()}" for each in wanted)
    ]


def chosen_rules(select: Iterable[str], ignore: Iterable[str]) -> list[Rule]:
    """Return the rules that `--select` and `--ignore` leave; each value may hold several words, separated by commas."""
    from tcpwin.limits import choose

    load_rules()
    try:
        chosen = choose(list(_words(select)), list(_words(ignore)))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not chosen:
        raise click.UsageError("--ignore excludes every rule of --select")
    return chosen


def _words(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        words = [word.strip() for word in text.split(",")]
        if not any(words):
            raise click.UsageError("a rule's code, the beginning of one, or a name is missing")
        yield from filter(None, words)


def parse_thresholds(texts: Iterable[str]) -> dict[str, float]:
    """Parse ``TW201.stall_ns=500ms`` into values by code and name; a rule may also be given by its name."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        rule_name, dot, threshold_name = name.strip().partition(".")
        if not equals or not dot:
            raise click.BadParameter(f"'{text[:60]}' is not understood: write it as TW201.stall_ns=500ms.")
        rule = find_rule(rule_name)
        if rule is None:
            raise click.BadParameter(f"no rule is called {rule_name[:40]}: {nearest(rule_name)}")
        threshold = rule.thresholds.get(threshold_name)
        if threshold is None:
            known = f"it has {', '.join(rule.thresholds)}" if rule.thresholds else "it has none"
            raise click.BadParameter(f"{rule.code} has no threshold {threshold_name[:40]!r}: {known}.")
        found[f"{rule.code}.{threshold_name}"] = _value(value.strip(), threshold)
    return found


def _value(text: str, threshold: Threshold) -> float:
    match = _QUANTITY.fullmatch(text)
    factor = None if match is None else _UNITS[threshold.unit].get(match[3])
    if match is None or factor is None:
        raise click.BadParameter(f"'{text[:40]}' is not understood: write it as {_EXAMPLES[threshold.unit]}.")
    value = Fraction(match[1]) * Fraction(10) ** int(match[2] or 0) * factor
    if threshold.unit == "share" and value > 1:
        raise click.BadParameter(f"'{text[:40]}' is above 1 (100 %): write a percentage with its sign.")
    return float(value)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def rules(as_json: bool) -> None:
    """List the rules of `tcpwin check`: code, name, severity, what each finds."""
    found = load_rules().values()
    if as_json:
        import json

        from tcpwin.limits import describe_rule

        click.echo(json.dumps({"schema": "tcpwin/rules/1", "rules": [describe_rule(rule) for rule in found]}, indent=1))
        return
    from tcpwin.render import render_rules

    page(render_rules(found))


EXIT_USAGE = 2


@click.command()
@click.argument("words", metavar="RULE", nargs=-1, required=True, shell_complete=completion.one_rule)
@click.option("--json", "as_json", is_flag=True, help="Write the page as JSON.")
def explain(words: tuple[str, ...], as_json: bool) -> int:
    """Explain a rule: what it finds, why that matters, how it is judged, when it is wrong, what to do.

    RULE is a code or a name from `tcpwin rules`, TW201 or zero-window-stall, or words from its title: zero window. If
    several rules have these words, they are listed.
    """
    name = " ".join(words)
    rule = find_rule(name)
    if rule is None and len(about := rules_about(name)) == 1:
        rule = about[0]
    if rule is None and about and not as_json:
        from tcpwin.render import render_rules

        page(render_rules(about))
        return 0
    if rule is None:
        complain(f"no rule is called {name[:60]}: {nearest(name)}")
        return EXIT_USAGE
    if as_json:
        import json

        from tcpwin.limits import describe_page

        click.echo(json.dumps({"schema": "tcpwin/rule/1", **describe_page(rule)}, indent=1))
        return 0
    from tcpwin.render import render_page

    page(render_page(rule))
    return 0


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Write the list as JSON.")
def fields(as_json: bool) -> None:
    """List every field of a connection and of its two directions, by group: name, type, meaning, unit."""
    import json

    from tcpwin import _engine
    from tcpwin.analysis import SCHEMA

    kinds = ("connection", "direction")
    if as_json:
        listing: dict[str, Any] = {
            kind: [{"name": name, "type": type_, "meaning": doc} for name, type_, doc in _engine.fields(kind)]
            for kind in kinds
        }
        listing["groups"] = [
            {"name": name, "of": kind, "meaning": doc, "fields": names}
            for kind in kinds
            for name, doc, names in _engine.field_groups(kind)
        ]
        click.echo(json.dumps({"schema": SCHEMA, **listing}, indent=1))
        return
    lines = [
        f"JSON schema {SCHEMA}: each of connections[] holds these; a_to_b and b_to_a hold a direction's.",
        "Groups without any event are omitted: null where that is possible, else 0 or false. --fields takes",
        "names of fields and groups, and verdict; all writes everything.",
    ]
    for kind in kinds:
        fields = {name: (type_, doc) for name, type_, doc in _engine.fields(kind)}
        lines += ["", kind]
        for group, about, names in _engine.field_groups(kind):
            lines += ["", f"  {group}: {about}"]
            lines += [f"    {name:32} {fields[name][0]:6} {fields[name][1]}" for name in names]
    page(lines)
