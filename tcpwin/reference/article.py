"""Articles number by number: what each states, and the command that shows tcpwin's number for it.

In: one TOML file per article in `tcpwin/reference/articles`, in the article's own units. Unknown keys are an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeAlias

Value: TypeAlias = float | str
"""A number, or a text such as the three values of a sysctl."""

ARTICLES = "articles"
"""Name under which `tcpwin reference` lists the articles."""
KINDS = ("system", "experiment", "table", "number")
WAYS = ("computed", "data", "lab", "quoted", "none")
BOUNDS = ("exact", "about", "over", "under", "at most", "between")
UNITS: Mapping[str, float] = MappingProxyType(
    dict.fromkeys(("", "bytes", "segments", "pages", "bit/s", "ns"), 1)
    | {"%": 0.01, "kB": 1e3, "MB": 1e6, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    | {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "MB/s": 8e6, "µs": 1e3, "ms": 1e6, "s": 1e9}
)
"""Units of the files, with their size in the base units of the JSON documents: bytes, bit/s, nanoseconds."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number of an article, and the place of tcpwin's number for it.

    Attributes:
        what: name within its entry; empty if the entry has one number.
        picture: whether the article shows it only in a picture.
        article: the article's number, several in a row, or a list of [least, most]; empty if the article states none.
        unit: unit of the article's number, one of `UNITS`.
        bound: ``exact``, or ``about``, ``over``, ``under``, ``at most`` the number, or ``between`` a least and a most.
        within: difference that still agrees, in percent; 0: half a unit of the article's last digit.
        at: path of tcpwin's number in the command's output, with ``*`` for each member and commas between names.
        match: instead of a path, a regular expression for the command's text, whose group is the number.
        times, per: tcpwin's number is the value times `times`, or divided by the value at the path `per`.
        run: of a run in the lab, the end and the value in its log, such as ``receiver.rate_bps``.
        recorded: that value, as recorded, in base units.
        spread: how much another run of it may differ, in percent.
        why: key of the reason for a difference.
    """

    what: str = ""
    picture: bool = False
    article: tuple[Value | tuple[Value, ...], ...] = ()
    unit: str = ""
    bound: str = "exact"
    within: float = 0
    at: str = ""
    match: str = ""
    times: float = 1
    per: str = ""
    run: str = ""
    recorded: float | None = None
    spread: float = 1
    why: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A system, experiment, table or number of an article.

    Attributes:
        id: unique within the article.
        place: section or table of the article.
        kind: one of `KINDS`.
        what: what it is, in a few words.
        how: one of `WAYS`: computed by the command, data of a recorded run, a run in the lab, the article's number as
            tcpwin ships it, or none.
        command: the command that shows it; empty for none.
        input: standard input of the command.
        under: path under which the numbers' paths begin.
        because: why tcpwin has no number for it.
        numbers: its numbers; none if it states none.
    """

    id: str
    place: str
    kind: str
    what: str
    how: str
    command: str = ""
    input: str = ""
    under: str = ""
    because: str = ""
    numbers: tuple[Number, ...] = ()


@dataclass(frozen=True, slots=True)
class Article:
    """An article with its entries.

    Attributes:
        name: of its file.
        title, publisher, published: of the article; the date as the article states it.
        whys: reasons for differences by key.
        entries: in the article's order.
    """

    name: str
    title: str
    publisher: str
    published: str
    whys: Mapping[str, str]
    entries: tuple[Entry, ...]


@cache
def articles() -> Mapping[str, Article]:
    """Return all articles by name, sorted."""
    folder = files("tcpwin.reference").joinpath("articles")
    names = sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml"))
    found = {name: read_article(name, folder.joinpath(f"{name}.toml").read_text("utf8")) for name in names}
    return MappingProxyType(found)


def read_article(name: str, text: str) -> Article:
    """Parse the file of an article.

    Raises:
        ValueError: an entry without a needed field, or with an unknown one.
    """
    data = tomllib.loads(text)
    try:
        return Article(
            name=name,
            title=data["title"],
            publisher=data["publisher"],
            published=data.get("published", ""),
            whys=MappingProxyType(data.get("why", {})),
            entries=tuple(_entries(data["entries"])),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{name}: {error}") from None


def value_text(value: Value) -> str:
    """Return a value as text: a whole number in full, others with at most four digits."""
    if isinstance(value, str):
        return value
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def row_text(values: Iterable[Value | tuple[Value, ...]], unit: str, bound: str = "exact") -> str:
    """Return values of one unit in a row; a least and a most are joined."""
    parts = []
    for each in values:
        ends = dict.fromkeys(map(value_text, each if isinstance(each, tuple) else (each,)))
        parts.append("–".join(ends))
    return _BEFORE.get(bound, "") + " / ".join(parts) + (f" {unit}" if unit else "")


_BEFORE = {"about": "about ", "over": "over ", "under": "below ", "at most": "at most "}


def stated_text(number: Number) -> str:
    """Return the article's number as text, empty if it states none."""
    if number.article:
        return row_text(number.article, number.unit, number.bound)
    return "in a picture" if number.picture else ""


_OF_NUMBERS = frozenset(each.name for each in fields(Number)) - {"what"}


def _entries(listed: list[dict[str, Any]]) -> Iterator[Entry]:
    place = ""
    for each in listed:
        # Consecutive entries of one section state it once.
        place = each.get("place", place)
        own = {key: value for key, value in each.items() if key in _OF_NUMBERS}
        stated = each.get("numbers", [own] if own else [])
        others = {key: value for key, value in each.items() if key not in _OF_NUMBERS and key != "numbers"}
        entry = Entry(**{**others, "place": place, "numbers": tuple(_number(number) for number in stated)})
        _check(entry)
        yield entry


def _number(data: dict[str, Any]) -> Number:
    stated = data.get("article", [])
    listed = stated if isinstance(stated, list) else [stated]
    values = tuple(tuple(each) if isinstance(each, list) else each for each in listed)
    return Number(**{**data, "article": values})


def _check(entry: Entry) -> None:
    def refuse(why: str) -> None:
        raise ValueError(f"{entry.id}: {why}")

    if entry.kind not in KINDS or entry.how not in WAYS:
        refuse(f"kind {entry.kind!r} or how {entry.how!r} is unknown")
    if not (entry.id and entry.place and entry.what):
        refuse("it needs id, place and what")
    if (entry.how == "none") != bool(entry.because):
        refuse("because goes with how = none, and only with it")
    if entry.how != "none" and not entry.command.startswith("tcpwin "):
        refuse("it needs a command")
    for number in entry.numbers:
        if number.unit not in UNITS or number.bound not in BOUNDS:
            refuse(f"unit {number.unit!r} or bound {number.bound!r} is unknown")
        ways = {"none": 0}.get(entry.how, 1)
        if sum(map(bool, (number.at, number.match, number.run))) != ways:
            refuse("a number needs one of at, match and run")
        if (entry.how == "lab") != bool(number.run) or (number.recorded is None) != (not number.run):
            refuse("run and recorded go with how = lab, and only with it")
