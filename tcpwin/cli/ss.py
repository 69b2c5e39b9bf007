"""`tcpwin ss`: sockets of snapshot files alone, as a table, JSON or columns; distributions over many of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import lru_cache
from itertools import chain
from socket import AF_INET, AF_INET6, inet_pton
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.io import Output, choose_output, colour_option, complain, write_document, write_lines, write_table
from tcpwin.cli.snap import parse_filter
from tcpwin.cli.snapshot_files import (
    as_far_as_it_goes,
    describe_file,
    only_option,
    open_snapshots,
    output_options,
    warn_of,
)
from tcpwin.errors import SnapshotError

if TYPE_CHECKING:
    from tcpwin.hosts import Distribution, SnapshotFile, SocketSample
    from tcpwin.hosts.collect import Filter

SCHEMA = "tcpwin/ss/1"


def _field_names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """Parse field names, separated by commas; a name that no socket has is a usage error."""
    names = tuple(dict.fromkeys(name.strip() for text in value for name in text.split(",")))
    if not names:
        return ()
    from tcpwin.hosts import AMOUNTS, FIELDS, SOCKET_KINDS

    is_numeric = param.name == "measured"
    known = FIELDS if is_numeric else tuple(SOCKET_KINDS)
    if is_numeric and names == ("all",):
        return AMOUNTS
    for name in names:
        if name not in known:
            from difflib import get_close_matches

            close = get_close_matches(name[:100], known, n=3, cutoff=0.5)
            hint = f": did you mean {', '.join(close)}?" if close else "."
            kind = "numeric field" if is_numeric else "field"
            raise click.BadParameter(f"a socket has no {kind} {name[:40]!r}{hint}")
    return names


def _sort_field(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _field_names(ctx, param, (value,))[0]


def _states(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> Filter | None:  # noqa: ARG001
    return parse_filter(" or ".join(f"state {state}" for state in value)) if value else None


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@click.option(
    "--state", "state", multiple=True, callback=_states, metavar="STATE", help="Only these states: ESTAB, LISTEN..."
)
@click.option("--filter", "wanted", type=parse_filter, metavar="EXPR", help="Only these sockets: 'dport = :443'.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    callback=_field_names,
    metavar="FIELD",
    shell_complete=completion.socket_fields,
    help="Fields to show, such as rtt_ns.",
)
@click.option(
    "--distribution",
    "measured",
    multiple=True,
    callback=_field_names,
    metavar="FIELD",
    shell_complete=completion.socket_fields,
    help="Show the distribution of a field over the sockets; all: of every field.",
)
@click.option(
    "--sort",
    callback=_sort_field,
    metavar="FIELD",
    shell_complete=completion.socket_fields,
    help="Sort by a field, largest first.",
)
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Show at most N sockets.")
@click.option("--all", "is_all", is_flag=True, help="Every sample of a socket, not only the last.")
@only_option
@output_options
@colour_option
def ss(
    files: tuple[str, ...],
    state: Filter | None,
    wanted: Filter | None,
    fields: tuple[str, ...],
    measured: tuple[str, ...],
    sort: str | None,
    limit: int | None,
    is_all: bool,
    only: str | None,
    as_json: bool,
    form: str | None,
    out: str | None,
    colour: str,
) -> None:
    """Show sockets as their kernel saw them: the last sample of each.

    FILE is output of `ss -tmi`, with any of its options, one or more times, a recording of `tcpwin snap`, or a bundle
    of such files: a folder, .zip or .tar.gz; - is standard input: ss -tmi | tcpwin ss -
    """
    if measured and (fields or sort or limit is not None):
        raise click.UsageError("--distribution covers all sockets: it excludes --field, --sort and --limit")
    output = choose_output(form, as_json, out, files)
    opened = open_snapshots(files, what="sockets", only=only)
    reading = _Reading(opened, [each for each in (state, wanted) if each is not None], is_all)
    if measured:
        _write_distributions(reading, measured, output, colour)
    else:
        _write_samples(reading, fields, sort, limit, output, colour)
    reading.warn()


Labelled = tuple[str, "SocketSample"]
"""A sample, and the name of its file if there are several."""


class _Reading:
    """Samples of some files, with the warnings that reading them raised."""

    def __init__(self, files: list[SnapshotFile], filters: list[Filter], is_all: bool) -> None:
        self._files = files
        self._filters = filters
        self._is_all = is_all
        self._samples = [0] * len(files)
        self.wanted = 0
        self.sockets: int | None = None if is_all else 0
        self.first_ns: int | None = None
        self.last_ns: int | None = None
        self.left_out = 0
        self.has_labels = len(files) > 1
        self._ended: list[str] = []

    def __iter__(self) -> Iterator[Labelled]:
        from tcpwin.hosts import LastSamples

        for place, file in enumerate(self._files):
            label = file.name if self.has_labels else ""
            if self._is_all:
                for sample in self._of(place):
                    yield label, sample
                continue
            last = LastSamples()
            for sample in self._of(place):
                last.take(sample)
            self.left_out += last.left_out
            self.sockets = (self.sockets or 0) + len(last)
            for sample in last:
                yield label, sample
        if not any(self._samples):
            first = self._files[0]
            what = first.format if not self.has_labels else f"and none in {len(self._files) - 1} more"
            raise SnapshotError(f"no TCP socket in it ({what})", first.name)

    def bounded(self) -> Iterator[Labelled]:
        """Yield the same samples, up to the limit of what fits into memory."""
        from tcpwin.hosts import KEPT_SOCKETS

        for number, each in enumerate(self):
            if number < KEPT_SOCKETS:
                yield each
            else:
                self.left_out += 1

    def _of(self, place: int) -> Iterator[SocketSample]:
        from tcpwin.hosts import SocketSample

        for sample in as_far_as_it_goes(self._files[place], self._ended, is_alone=len(self._files) == 1):
            if not isinstance(sample, SocketSample):
                continue
            self._samples[place] += 1
            if not all(_is_wanted(each, sample) for each in self._filters):
                continue
            self.wanted += 1
            time_ns = sample.time_ns
            if time_ns is not None:
                self.first_ns = time_ns if self.first_ns is None else min(self.first_ns, time_ns)
                self.last_ns = time_ns if self.last_ns is None else max(self.last_ns, time_ns)
            yield sample

    def facts(self) -> dict[str, Any]:
        """Return the end of the JSON document."""
        return {
            "files": [describe_file(file, count) for file, count in zip(self._files, self._samples, strict=True)],
            "samples_wanted": self.wanted,
            "sockets": self.sockets,
            "first_time_ns": self.first_ns,
            "last_time_ns": self.last_ns,
            "left_out": self.left_out,
        }

    def summary(self) -> Iterator[str]:
        """Return the lines below the table."""
        from tcpwin.render import span_text
        from tcpwin.units import count_text, name_text

        read = sum(self._samples)
        words = [] if self.sockets is None else [count_text(self.sockets, "socket")]
        words.append(count_text(self.wanted, "sample") + ("" if self.wanted == read else f" of {read:,}"))
        yield f"{', '.join(words)}, {span_text(self.first_ns, self.last_ns)}"
        if self.has_labels:
            for number, file in enumerate(self._files, 1):
                yield f"file {number}: {name_text(file.name)}"

    def label_numbers(self) -> dict[str, str]:
        """Number the files by name, for a table."""
        return {file.name: str(number) for number, file in reversed(list(enumerate(self._files, 1)))}

    def warn(self) -> None:
        """Report on stderr what was not understood or left out."""
        warn_of(self._files, self._samples, "TCP socket", self._ended)
        if self.left_out:
            complain(f"warning: {self.left_out} samples omitted: too many sockets to hold in memory")


def _write_samples(
    reading: _Reading, fields: tuple[str, ...], sort: str | None, limit: int | None, output: Output, colour: str
) -> None:
    from tcpwin.hosts import SOCKET_KINDS, socket_object, socket_values
    from tcpwin.render import render_conclusions, render_sockets

    is_held = output.form == "table" or sort is not None
    found: Iterable[Labelled] = reading.bounded() if is_held else reading
    if sort is not None:
        found = sorted(found, key=_order(sort))
    if limit is not None:
        found = _limited(found, limit)
    if output.form == "table":
        held = list(found)
        numbers = reading.label_numbers()
        labels = [numbers[label] for label, _ in held] if reading.has_labels else []
        lines = chain(
            render_sockets([sample for _, sample in held], fields=fields, labels=labels), [""] if held else []
        )
        shown = [] if fields else list(render_conclusions(sample for _, sample in held))
        write_lines([*lines, *shown, *([""] if shown else []), *reading.summary()], output, colour)
        return
    names = fields or None
    if output.form in ("json", "jsonl"):
        objects = (
            {**_file_of(label), **socket_object(sample, names), **_conclusion_of(sample, names)}
            for label, sample in found
        )
        if output.form == "json":
            write_document(SCHEMA, "samples", objects, reading.facts, output)
        else:
            write_table(objects, {}, output)
        return
    kinds = {"file": "str"} if reading.has_labels else {}
    kinds |= {name: SOCKET_KINDS[name] for name in fields or SOCKET_KINDS}
    rows = ({**_file_of(label), **socket_values(sample, fields or SOCKET_KINDS)} for label, sample in found)
    write_table(rows, kinds, output)


def _write_distributions(reading: _Reading, measured: tuple[str, ...], output: Output, colour: str) -> None:
    from tcpwin.hosts import AMOUNTS, distribution
    from tcpwin.render import render_distributions

    samples = [sample for _, sample in reading.bounded()]
    found = {name: distribution(samples, name, last_only=False) for name in measured}
    if measured == AMOUNTS:
        # For "all", omit the lines of fields without values.
        found = {name: each for name, each in found.items() if each is not None}
    if output.form == "table":
        lines = render_distributions(found, sockets=len(samples))
        write_lines([*lines, "", *reading.summary()], output, colour)
    elif output.form == "json":
        objects = [_distribution_object(*item) for item in found.items()]
        write_document(SCHEMA, "distributions", objects, reading.facts, output)
    else:
        columns = [name for name in _distribution_object("", None) if name not in ("field", "count")]
        kinds = {"field": "str", "count": "int", **dict.fromkeys(columns, "float")}
        write_table((_distribution_object(*item) for item in found.items()), kinds, output)


def _distribution_object(name: str, found: Distribution | None) -> dict[str, Any]:
    """Return a distribution as an object by its field; only a count of 0 if no socket has a value."""
    from tcpwin.hosts import Distribution as Measured

    if found is None:
        return {"field": name, **dict.fromkeys(Measured.__slots__), "count": 0}
    return {"field": name, **asdict(found)}


def _conclusion_of(sample: SocketSample, names: tuple[str, ...] | None) -> dict[str, str]:
    from tcpwin.hosts import conclude

    text = conclude(sample) if names is None else None
    return {} if text is None else {"conclusion": text}


def _file_of(label: str) -> dict[str, str]:
    return {"file": label.encode("utf-8", "backslashreplace").decode()} if label else {}


def _order(field: str) -> Callable[[Labelled], tuple[bool, Any]]:
    """Return a sort key: numbers from the largest, text from a to z, missing values last."""
    from tcpwin.hosts import SOCKET_KINDS, socket_values

    is_text = SOCKET_KINDS[field] == "str"

    def key(labelled: Labelled) -> tuple[bool, Any]:
        value = socket_values(labelled[1], (field,))[field]
        if value is None or value == "":
            return True, "" if is_text else 0
        return False, value if is_text else -value

    return key


def _limited(found: Iterable[Labelled], limit: int) -> Iterator[Labelled]:
    """Yield the first `limit` samples, but read all, as the summary covers them."""
    for number, each in enumerate(found):
        if number < limit:
            yield each


_MESSAGE = struct.Struct("=BB2x2s2s16s16s")
"""The fields of `struct inet_diag_msg` that a filter examines (include/uapi/linux/inet_diag.h)."""


def _is_wanted(wanted: Filter, sample: SocketSample) -> bool:
    """Return true if a filter, which matches kernel messages, accepts a sample."""
    is_v6 = _is_v6(sample.local_address) or _is_v6(sample.peer_address)
    message = _MESSAGE.pack(
        AF_INET6 if is_v6 else AF_INET,
        _state_number(sample.state),
        (sample.local_port or 0).to_bytes(2, "big"),
        (sample.peer_port or 0).to_bytes(2, "big"),
        _packed(sample.local_address, is_v6),
        _packed(sample.peer_address, is_v6),
    )
    return wanted.matches(message)


def _is_v6(address: str) -> bool:
    return ":" in address


@lru_cache(maxsize=64)
def _state_number(state: str) -> int:
    from tcpwin.hosts.collect import STATES

    return STATES.index(state) if state in STATES else 0


@lru_cache(maxsize=8192)
def _packed(address: str, is_v6: bool) -> bytes:
    try:
        return inet_pton(AF_INET6 if is_v6 else AF_INET, address)
    except (OSError, ValueError):
        # Any address, or a name that `ss -r` looked up.
        return bytes(16)
