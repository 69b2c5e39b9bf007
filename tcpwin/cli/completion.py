"""Shell completion: rules, figures, limits, scenarios, files, connections of a capture.

In: the word typed so far. Out: candidates with their meanings. An error yields no candidates, because a message would
disturb the typing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

MOST_BYTES = 64 << 20
"""Largest capture that is read for its connections: completion must answer at once."""
MOST_ITEMS = 50
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _offering(words: Callable[[click.Context], Iterable[tuple[str, str]]], *, listed: bool = False) -> Complete:
    """Return the candidates that begin with the typed word or, for a list, with its last part."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        before, comma, last = incomplete.rpartition(",") if listed else ("", "", incomplete)
        found: list[CompletionItem] = []
        with suppress(Exception):
            for word, about in words(ctx):
                if word.lower().startswith(last.lower()):
                    found.append(CompletionItem(f"{before}{comma}{word}", help=about))
        return found[:MOST_ITEMS]

    return complete


def _rules(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.cli.rules import load_rules

    rules = load_rules()
    yield from ((code, rule.name) for code, rule in rules.items())
    yield from ((rule.name, code) for code, rule in rules.items())


def _thresholds(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.cli.rules import load_rules

    for code, rule in load_rules().items():
        for name, threshold in rule.thresholds.items():
            yield f"{code}.{name}=", f"{rule.name}; {threshold.default:g}"


def _limits(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.limits import LIMIT_NAMES
    from tcpwin.paths import LIFTABLE

    return ((limit, LIMIT_NAMES[limit]) for limit in LIFTABLE)


def _scenarios(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.lab import scenarios

    return ((each.name, each.title) for each in scenarios())


def _sets(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.lab import scenarios

    return ((name, "") for name in dict.fromkeys(name for each in scenarios() for name in each.sets))


def _socket_fields(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.hosts import SOCKET_KINDS

    return ((name, "") for name in SOCKET_KINDS)


def _figures(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin import figures

    yield from ((name, figures.get(name).title) for name in figures.names())
    yield "timeline", "several on one time axis"


def _columns(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin import _engine

    return ((name, "") for name in _engine.ROW_COLUMNS)


def _references(_: click.Context) -> Iterator[tuple[str, str]]:
    from tcpwin.reference import ARTICLES, articles, references

    yield from ((name, each.title) for name, each in references().items())
    yield from ((f"{ARTICLES}/{name}", each.title) for name, each in articles().items())


def _connections(_: click.Context) -> Iterator[tuple[str, str]]:
    from click.shell_completion import split_arg_string

    from tcpwin.analysis import Measurement

    # click has no arguments yet while an option still lacks its value.
    captures = [each for each in split_arg_string(os.environ.get("COMP_WORDS", ""))[1:] if Path(each).is_file()]
    if captures and sum(Path(each).stat().st_size for each in captures) <= MOST_BYTES:
        for connection in Measurement.measure(captures).connections:
            yield str(connection.id), f"{connection.a} → {connection.b}"


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave the completion of files to the shell."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


rules = _offering(_rules, listed=True)
one_rule = _offering(_rules)
thresholds = _offering(_thresholds)
figures = _offering(_figures)
limits = _offering(_limits)
scenarios = _offering(_scenarios)
sets = _offering(_sets)
socket_fields = _offering(_socket_fields, listed=True)
columns = _offering(_columns, listed=True)
references = _offering(_references)
connections = _offering(_connections)
