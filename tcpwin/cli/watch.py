"""`tcpwin watch`: a recorder that waits for a stall, and keeps its packets."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.io import colour_option, complain
from tcpwin.cli.rules import chosen_rules, parse_thresholds, threshold_option
from tcpwin.cli.snap import parse_duration, parse_every, parse_size
from tcpwin.units import count_text, name_text, time_text

if TYPE_CHECKING:
    from tcpwin.limits import Analysis
    from tcpwin.render import ConnectionTable
    from tcpwin.watch import Alert, Notice, Round

ROWS = 10
SHOWN_STRIKES = 5
WIDE_COLUMNS = 150
"""Minimum width of a terminal whose table shows window and flight."""


@click.command()
@click.option("-i", "--interface", metavar="IFACE", help="Watch this interface, or any.")
@click.option("--follow", metavar="FILE", help="Watch a pcap file that is being written, or - for standard input.")
@click.option("-o", "--output", "out", metavar="FOLDER", help="Write a bundle for each alert into this folder.")
@click.option("--filter", "wanted", metavar="EXPR", help="Only packets that match EXPR, in tcpdump's language.")
@click.option(
    "--recent", "recent_ns", type=parse_duration, default="60s", show_default=True, metavar="TIME",
    help="Keep the packets of the last TIME …",
)  # fmt: skip
@click.option(
    "--memory", "recent_bytes", type=parse_size, default="64MiB", show_default=True, metavar="SIZE",
    help="… but no more than SIZE of them.",
)  # fmt: skip
@click.option(
    "--every", "every_ns", type=parse_every, default="10s", show_default=True, metavar="TIME",
    help="Judge them every TIME.",
)  # fmt: skip
@click.option(
    "--cost", "cost_ns", type=parse_duration, default="500ms", show_default=True, metavar="TIME",
    help="Raise no alert for a cost below TIME.",
)  # fmt: skip
@click.option(
    "--after", "after_ns", type=parse_duration, default="5s", show_default=True, metavar="TIME",
    help="Write the bundle TIME after an alert.",
)  # fmt: skip
@click.option("--for", "duration_ns", type=parse_duration, metavar="TIME", help="Stop after TIME; default: at Ctrl-C.")
@click.option("--keep", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Bundles to keep.")
@click.option(
    "--sample", "sample_ns", type=parse_every, default="1s", show_default=True, metavar="TIME",
    help="Record this host's sockets every TIME, for the bundles; with -i and -o.",
)  # fmt: skip
@click.option(
    "--drops", is_flag=True, help="Add the kernel's reasons for dropped packets to bundles; with -o, as root."
)
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    shell_complete=completion.rules,
    help="Only these rules raise alerts: codes, prefixes or names.",
)
@click.option(
    "--ignore", multiple=True, metavar="RULES", shell_complete=completion.rules, help="These rules raise no alerts."
)
@threshold_option
@click.option(
    "--metrics", type=click.IntRange(0, 65535), metavar="PORT", help="Serve /metrics and /events on 127.0.0.1:PORT."
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object per line: rounds, alerts and bundles.")
@colour_option
def watch(
    interface: str | None,
    follow: str | None,
    out: str | None,
    wanted: str | None,
    recent_ns: int,
    recent_bytes: int,
    every_ns: int,
    cost_ns: int,
    after_ns: int,
    duration_ns: int | None,
    keep: int,
    sample_ns: int,
    drops: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    thresholds: tuple[str, ...],
    metrics: int | None,
    as_json: bool,
    colour: str,
) -> None:
    """Watch an interface, or a growing file, until something limits a connection; keep the packets around it.

    Headers of the newest packets are held in memory and judged repeatedly. A new finding of at least a warning puts a
    bundle into FOLDER: the packets before and after, and this host's sockets, counters and settings, which
    every other command reads. On a terminal the worst connections are shown. Needs CAP_NET_RAW to capture.
    """
    if (interface is None) == (follow is None):
        raise click.UsageError("name what to watch: -i IFACE, or --follow FILE")
    if follow is not None and wanted is not None:
        raise click.UsageError(
            "--filter is for an interface: with --follow, filter in the program that writes the file"
        )
    if drops and (interface is None or out is None):
        raise click.UsageError("--drops adds this host's dropped packets to bundles: it needs -i and -o")
    rules = chosen_rules(select, ignore)
    from tcpwin.watch import (
        BLOCK_BYTES,
        Bundles,
        GrowingFile,
        Interface,
        Live,
        Metrics,
        Settings,
        Watch,
        recording_drops,
        sampling,
        serve,
    )  # fmt: skip

    settings = Settings(
        recent_ns, recent_bytes, every_ns, after_ns, cost_ns, duration_ns, rules, parse_thresholds(thresholds)
    )
    # The kernel's buffer is half the size of ours.
    blocks = max(recent_bytes // 2 // BLOCK_BYTES, 1)
    with ExitStack() as stack:
        is_ended = stack.enter_context(_end_requested())
        source = (
            Interface(interface, filter=wanted, blocks=blocks) if interface is not None else GrowingFile(follow or "-")
        )
        stack.callback(source.close)
        counted, live = Metrics(), Live(source.name)
        if metrics is not None:
            stack.callback(serve(counted, metrics, live))
        notice = _as_json if as_json else _Screen(source.name, colour).take if sys.stdout.isatty() else _as_lines

        def notify(what: Notice) -> None:
            counted.take(what)
            live.take(what)
            if isinstance(what, str):
                complain(f"warning: {what}")
            notice(what)

        more: dict[str, Any] = {}
        if out is not None:
            folder = Path(out)
            more["bundles"] = Bundles(folder, keep)
            if interface is not None:
                if drops:
                    more["beside"] = stack.enter_context(recording_drops(folder))
                more["snapshots"] = stack.enter_context(sampling(folder, sample_ns, notify))
        Watch(source, settings, notify, is_ended=is_ended, is_wanted=lambda: live.is_wanted, **more).run()


@contextmanager
def _end_requested() -> Iterator[Callable[[], bool]]:
    """Return a function that is true once a signal requests the end; a second signal ends the program at once."""
    signals: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, _: object) -> None:
        signals.append(number)
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: bool(signals)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_json(what: Notice) -> None:
    if isinstance(what, str):
        return
    if isinstance(what, Path):
        document: dict[str, Any] = {"type": "bundle", "path": str(what)}
    else:
        document = what.document()
        document = {"type": document.pop("type", "strike"), **document}
    click.echo(json.dumps(document))
    sys.stdout.flush()


def _as_lines(what: Notice) -> None:
    from tcpwin.watch import Alert

    if isinstance(what, Path):
        click.echo(f"bundle {name_text(str(what))}")
    elif isinstance(what, Alert):
        click.echo(alert_line(what))
    sys.stdout.flush()


def alert_line(alert: Alert) -> str:
    """Format time, finding, connection and cost of an alert."""
    finding = alert.finding
    now = datetime.now(UTC).strftime("%H:%M:%SZ")
    return (
        f"{now}  {finding.code} {finding.name}  {alert.client} → {alert.server}  "
        f"{name_text(finding.text).rstrip('.')}. Cost: about {time_text(finding.cost_ns)}."
    )


def head_line(name: str, round: Round) -> str:
    """Return a line about the watched interface or file, and its connections."""
    analysis = round.analysis
    dropped = f", {round.dropped:,} dropped" if round.dropped else ""
    line = f"{name_text(name)}: {count_text(round.packets, 'packet')}{dropped}"
    if analysis is None:
        return f"{line}; waiting for packets"
    problems = sum(round.problems.values())
    return (
        f"{line}; the last {time_text(round.span_ns)}: {count_text(len(analysis), 'connection')}, "
        f"{problems:,} with a problem; judged in {time_text(round.took_ns)}"
    )


class _Screen:
    """A terminal screen with the newest round and recent alerts, redrawn each round."""

    def __init__(self, name: str, colour: str) -> None:
        self._name = name
        self._colour = colour
        self._lately: list[str] = []

    def take(self, what: Notice) -> None:
        from tcpwin.watch import Alert, Round

        if isinstance(what, Alert):
            self._lately.append(alert_line(what))
        elif isinstance(what, Path):
            self._lately.append(f"bundle {name_text(str(what))}")
        elif isinstance(what, Round):
            self._show(what)
        self._lately = self._lately[-SHOWN_STRIKES:]

    def _show(self, round: Round) -> None:
        from tcpwin.cli.io import show
        from tcpwin.render import tabulate_connections

        click.clear()
        blocks: list[Any] = [[head_line(self._name, round), ""]]
        if round.analysis is not None:
            worst = [each.id for each in round.analysis.worst(ROWS)]
            blocks.append(_with_sketches(tabulate_connections(round.analysis, worst), round.analysis, worst))
        show([*blocks, ["", *self._lately, "", "Ctrl-C ends it."]], self._colour)


def _with_sketches(table: ConnectionTable, analysis: Analysis, ids: Sequence[int]) -> ConnectionTable:
    """Add window and flight of each verdict's direction to the table, if there is room."""
    if get_terminal_size().columns < WIDE_COLUMNS:
        return table
    from tcpwin.figures import SKETCH_BUCKETS, draw_blocks

    views = analysis.views(ids, buckets=SKETCH_BUCKETS)
    verdicts = [analysis.connections[id].verdict for id in ids]
    sketches = [draw_blocks(view, each.direction or "a_to_b") for view, each in zip(views, verdicts, strict=True)]
    heads = {**table.heads, "window": False, "flight": False}
    return replace(table, heads=heads, rows=[(*row, *each) for row, each in zip(table.rows, sketches, strict=True)])
