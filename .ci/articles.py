"""Write the page that puts tcpwin's numbers next to those of the articles, and check that the two agree.

`tcpwin/reference/articles` states what the articles say and which command shows tcpwin's number. The script runs these
commands in this process, except for runs in the lab, whose numbers are recorded in the file and repeated at night.
With ``--check`` it writes nothing, lists what is stale or disagrees, and exits with 1.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tcpwin.cli.program import cli
from tcpwin.reference.article import UNITS, Article, Entry, Number, articles, row_text, stated_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "tcpwin" / "docs" / "lab" / "articles.md"
WIDTH = 140
LONG = 60
"""Quoted numbers of this length are not printed twice."""
HEADING = "Where the numbers differ"
ANCHOR = HEADING.lower().replace(" ", "-")
INTRODUCTION = """\
# Every number of the articles, next to tcpwin's

Every system, experiment, table and number of the five articles behind [the references](../reference.md) and
[the lab's scenarios](systems.md), with the command that shows it. `tcpwin reference articles/cloudflare` lists the same
entries of one article. `.ci/articles.py` writes this page from `tcpwin/reference/articles`; CI runs the commands and
compares their output with the page on each change, and repeats the runs of the lab at night.

| how | tcpwin's number is |
|---|---|
| computed | what the command computes, from its arguments or from a capture in the repository |
| data | of a recorded run of the lab; `tcpwin lab run --set published` repeats those of Cloudflare's tables |
| lab | of a run of the lab, as recorded; the command repeats it |
| quoted | the article's own, which tcpwin ships to compare with; it has none of its own |
| – | absent, for the reason in the last column |

Commands with `captures/` run in a clone of the repository. A command with `-` reads the text that the row names. A
number in brackets leads to the reason for a difference. Rates of several loops have a minimum and a maximum for each.
"""


@dataclass(frozen=True)
class Found:
    """tcpwin's values for a number, in the article's unit, or the problem that left none."""

    values: tuple[Any, ...] = ()
    problem: str = ""


@cache
def output(command: str, given: str) -> tuple[str, Any]:
    """Return what a command prints, and its parsed form if it is JSON or TOML.

    Raises:
        ValueError: the command failed.
    """
    with contextlib.chdir(ROOT):
        done = CliRunner().invoke(
            cli, shlex.split(command)[1:], input=given, env={"COLUMNS": "200"}, standalone_mode=False
        )
    if status := done.exit_code or done.return_value:
        raise ValueError(f"`{command}` fails with {status}: {done.stderr.strip() or done.exception}")
    for parse in (json.loads, tomllib.loads):
        with contextlib.suppress(ValueError):
            return done.stdout, parse(done.stdout)
    return done.stdout, None


def follow(document: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path: names and indexes between slashes, ``*`` for each member, commas between names."""
    name, _, rest = path.partition("/")
    if not path:
        yield document
        return
    for each in name.split(","):
        if each == "*":
            members = document.values() if isinstance(document, Mapping) else document
            for member in members:
                yield from follow(member, rest)
        else:
            yield from follow(document[int(each) if isinstance(document, list) else each], rest)


def find(entry: Entry, number: Number) -> Found:
    """Return tcpwin's values for a number."""
    try:
        if number.recorded is not None:
            values: list[Any] = [number.recorded]
        elif number.match:
            found = re.search(number.match, output(entry.command, entry.input)[0])
            if found is None:
                return Found(problem=f"no text matches {number.match!r}")
            values = [float(found[1].replace(",", ""))]
        else:
            document = output(entry.command, entry.input)[1]
            values = list(follow(document, "/".join(filter(None, (entry.under, number.at)))))
            if number.per:
                [divisor] = follow(document, "/".join(filter(None, (entry.under, number.per))))
                values = [value / divisor for value in values]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        return Found(problem=f"{type(error).__name__}: {error}")
    factor = UNITS[number.unit] / number.times
    return Found(tuple(value if isinstance(value, str) else value / factor for value in values))


def flat(number: Number) -> list[Any]:
    """Return the article's values in one row."""
    return [value for each in number.article for value in (each if isinstance(each, tuple) else (each,))]


def agrees(number: Number, values: tuple[Any, ...]) -> bool:
    """Whether tcpwin's values are the article's, within the stated difference."""
    if number.bound == "between":
        [(least, most)] = number.article
        return all(least <= value <= most for value in values)
    stated = flat(number)
    return len(stated) == len(values) and all(map(lambda a, b: _agrees(number, a, b), stated, values))


def _agrees(number: Number, stated: Any, ours: Any) -> bool:
    if isinstance(stated, str) or isinstance(ours, str):
        return str(stated).split() == str(ours).split()
    if number.bound in ("over", "under", "at most"):
        return bool(
            ours > stated if number.bound == "over" else ours < stated if number.bound == "under" else ours <= stated
        )
    percent = number.within or (10 if number.bound == "about" else 0)
    decimals = len(str(stated).partition(".")[2]) if isinstance(stated, float) else 0
    allowed = max(abs(stated) * percent / 100, 0 if percent else 0.5 * 10**-decimals)
    return bool(abs(ours - stated) <= allowed * (1 + 1e-9))


def problems_of(article: Article) -> Iterator[str]:
    """Yield what is wrong with an article's entries: failing commands, unexplained or explained-away differences."""
    used = set()
    for entry in article.entries:
        if entry.how not in ("lab", "none") and not entry.numbers:
            try:
                output(entry.command, entry.input)
            except ValueError as error:
                yield f"{article.name}/{entry.id}: {error}"
        for number in entry.numbers:
            label = ": ".join(filter(None, (f"{article.name}/{entry.id}", number.what)))
            if number.why:
                used.add(number.why)
                if number.why not in article.whys:
                    yield f"{label}: no reason {number.why!r}"
            if entry.how == "none":
                continue
            found = find(entry, number)
            if found.problem:
                yield f"{label}: {found.problem}"
            elif number.article and agrees(number, found.values) == bool(number.why):
                said = "disagree, and no reason is given" if not number.why else "agree, but a reason is given"
                yield f"{label}: the article's {stated_text(number)} and tcpwin's {found_text(number, found)} {said}"
    yield from (f"{article.name}: nothing uses the reason {key!r}" for key in article.whys if key not in used)


def found_text(number: Number, found: Found) -> str:
    """Return tcpwin's number as text, grouped as the article's."""
    if number.bound != "between" and any(isinstance(each, tuple) for each in number.article):
        pairs = [found.values[at : at + 2] for at in range(0, len(found.values), 2)]
        return row_text(pairs, number.unit)
    return row_text(found.values, number.unit)


def page_text(listed: Iterable[Article]) -> str:
    """Return the page."""
    lines, reasons = [INTRODUCTION], []
    for article in listed:
        published = ", ".join(filter(None, (article.publisher, article.published)))
        lines += [f"## {article.publisher.partition(',')[0]}", "", f"“{article.title}” ({published})", ""]
        for place, entries in groupby(article.entries, key=lambda entry: entry.place):
            lines += [f"**{place}**", "", "| what | article | tcpwin | how | command |", "|---|---|---|---|---|"]
            lines += [_row(article, entry, reasons) for entry in entries]
            lines.append("")
    lines += [f"## {HEADING}", ""]
    for place, reason in enumerate(reasons, 1):
        mark = f"{place}. "
        lines += textwrap.wrap(mark + reason, WIDTH, subsequent_indent=" " * len(mark), break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _row(article: Article, entry: Entry, reasons: list[str]) -> str:
    stated, ours = [], []
    for number in entry.numbers:
        name = f"{number.what} " if number.what else ""
        if text := stated_text(number):
            stated.append(name + text)
        if entry.how == "none":
            continue
        found = find(entry, number)
        reason = ""
        if number.why:
            why = article.whys.get(number.why, "")
            if why not in reasons:
                reasons.append(why)
            reason = f" [[{reasons.index(why) + 1}]](#{ANCHOR})"
        ours.append(name + (found.problem or found_text(number, found)) + reason)
    where = entry.because if entry.how == "none" else f"`{_shown(entry.command)}`"
    how = "–" if entry.how == "none" else entry.how
    row = "; ".join(ours)
    if entry.how == "quoted" and len(row) > LONG and ours == stated:
        row = "the same"
    cells = (entry.what, "; ".join(stated) or "–", row or "–", how, where)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _shown(command: str) -> str:
    return command.removesuffix(" --json")


def counts(article: Article) -> Mapping[str, int]:
    """Return the number of entries by how tcpwin's number is obtained."""
    ways = [entry.how for entry in article.entries]
    return {way: ways.count(way) for way in dict.fromkeys(ways)}


def check(listed: Iterable[Article]) -> list[str]:
    """Return everything that is stale or disagrees."""
    listed = list(listed)
    found = [problem for article in listed for problem in problems_of(article)]
    text = page_text(listed)
    if not PAGE.exists() or PAGE.read_text(encoding="utf8") != text:
        now = set(PAGE.read_text(encoding="utf8").splitlines()) if PAGE.exists() else set()
        stale = [line for line in text.splitlines() if line not in now]
        found += [f"{PAGE.name} is stale: {line[:160]}" for line in stale] or [f"{PAGE.name} is stale"]
    return found


def main(arguments: list[str]) -> int:
    """Write the page, or check it with ``--check``."""
    listed = list(articles().values())
    if "--check" not in arguments:
        PAGE.write_text(page_text(listed), encoding="utf8")
        for article in listed:
            print(article.name, *(f"{way} {count}" for way, count in counts(article).items()))
    found = check(listed)
    print(*found, sep=os.linesep, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
