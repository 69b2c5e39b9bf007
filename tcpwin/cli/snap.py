"""`tcpwin snap`: record this host's TCP sockets, counters and memory, with packet headers on request."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcpwin.cli.io import complain
from tcpwin.errors import SnapshotError
from tcpwin.units import bytes_text, count_text, share_text, time_text

if TYPE_CHECKING:
    from tcpwin.hosts.collect import Filter

_SECOND_NS = 10**9
_TIMES_NS = {"us": 10**3, "µs": 10**3, "ms": 10**6, "s": _SECOND_NS, "min": 60 * _SECOND_NS, "m": 60 * _SECOND_NS}
_TIMES_NS["h"] = 3600 * _SECOND_NS
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZES |= {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-zµ]{0,3})", re.ASCII)

LEAST_EVERY_NS = 10**7
LEAST_SIZE_BYTES = 1 << 16
MOST_SIZE_BYTES = 1 << 40
SAMPLES = "snap.jsonl"
PACKETS = "packets.pcap"


def parse_every(text: str) -> int:
    """Parse the sampling interval into nanoseconds: ``200ms``, ``1s``."""
    return _parse(text, _TIMES_NS, LEAST_EVERY_NS, 3600 * _SECOND_NS, "200ms or 1s", "between 10 ms and 1 hour")


def parse_duration(text: str) -> int:
    """Parse the recording time into nanoseconds: ``60s``, ``10min``, ``2h``."""
    return _parse(text, _TIMES_NS, 10**6, 10**7 * _SECOND_NS, "60s, 10min or 2h", "between 1 ms and 10,000,000 s")


def parse_size(text: str) -> int:
    """Parse a file size into bytes: ``64M`` and ``64MiB`` are 67,108,864, ``64MB`` is 64,000,000."""
    bounds = "between 64 KiB and 1 TiB"
    return _parse(text, _SIZES, LEAST_SIZE_BYTES, MOST_SIZE_BYTES, "64MiB, 64M (the same) or 64MB", bounds)


def parse_filter(text: str) -> Filter:
    """Parse a filter; an error names the wrong character's position."""
    from tcpwin.hosts.collect import Filter, FilterError

    try:
        return Filter(text)
    except FilterError as error:
        raise click.BadParameter(f"{error}.") from None


def _parse(text: str, units: dict[str, int], least: int, most: int, example: str, bounds: str) -> int:
    text = text.strip()
    found = _QUANTITY.fullmatch(text)
    unit = None if found is None else units.get(found[2].lower())
    if found is None or unit is None:
        raise click.BadParameter(f"'{text[:40]}' is not understood: write it as {example}.")
    amount = int(Decimal(found[1]) * unit)
    if not least <= amount <= most:
        raise click.BadParameter(f"'{text[:40]}' is not {bounds}.")
    return amount


@click.command()
@click.option("--filter", "wanted", type=parse_filter, metavar="EXPR", help="Only these sockets: 'dport = :443'.")
@click.option(
    "--every",
    "every_ns",
    type=parse_every,
    default="200ms",
    show_default=True,
    metavar="TIME",
    help="Time between samples.",
)
@click.option(
    "--for", "duration_ns", type=parse_duration, metavar="TIME", help="Stop after this time; default: at Ctrl-C."
)
@click.option("-o", "--output", "out", required=True, metavar="OUT", help="Write to this file, or into this folder/.")
@click.option("--capture", "interface", metavar="IFACE", help="Capture packet headers of this interface, too.")
@click.option(
    "--max-size", "max_bytes", type=parse_size, default="64MiB", show_default=True, metavar="SIZE", help="Largest file."
)
@click.option("--keep", type=click.IntRange(1, 1000), default=4, show_default=True, help="Number of files to keep.")
def snap(
    wanted: Filter | None,
    every_ns: int,
    duration_ns: int | None,
    out: str,
    interface: str | None,
    max_bytes: int,
    keep: int,
) -> None:
    """Record this host's TCP sockets, counters and memory until Ctrl-C, or for a time.

    Needs no root; --capture needs tcpdump and permission to capture. A full file is renamed to OUT.1, OUT.2 and so on;
    the oldest is deleted. Filters are those of ss: dport, sport, dst, src, state, and, or, not, parentheses.
    """
    if not sys.platform.startswith("linux"):
        raise SnapshotError("sockets can be sampled on Linux only", "snap")
    from tcpwin.hosts.collect import record

    path, packets = _paths(out)
    with _waiting() as wait:
        if sys.stderr.isatty():
            click.echo(f"recording to {path}, Ctrl-C ends it", err=True)
        done = record(
            path,
            every_ns=every_ns,
            duration_ns=duration_ns,
            filter=wanted,
            max_bytes=max_bytes,
            keep=keep,
            interface=interface,
            capture_path=packets,
            wait=wait,
        )
    share = done.cpu_ns / done.elapsed_ns if done.elapsed_ns else 0.0
    size = _size(done.written_bytes, done.files)
    if done.kept_files != done.files:
        size += f" written; kept {_size(done.kept_bytes, done.kept_files)}"
    click.echo(
        f"{count_text(done.samples, 'sample')} of {count_text(done.most_sockets, 'socket')} at most in "
        f"{time_text(done.elapsed_ns)}, {done.skipped:,} skipped, {share_text(share, places=1)} of a core",
        err=True,
    )
    click.echo(f"{path}: {size}", err=True)
    if done.packets is not None:
        click.echo(f"{packets}: {done.packets}", err=True)
    if done.capture_ended:
        complain("warning: tcpdump ended before the samples did")


def _size(count_bytes: int, files: int) -> str:
    return f"{bytes_text(count_bytes)} in {count_text(files, 'file')}"


def _paths(out: str) -> tuple[Path, Path]:
    if out == "-":
        raise click.UsageError("samples are written to files: name one with -o FILE")
    path = Path(out)
    if out.endswith("/") or path.is_dir():
        path.mkdir(exist_ok=True)
        return path / SAMPLES, path / PACKETS
    if path.suffix in (".pcap", ".pcapng"):
        raise click.UsageError(
            f"{out} is needed for the packets: name the samples differently, such as {path.with_suffix('.jsonl')}"
        )
    return path, path.with_suffix(".pcap")


@contextmanager
def _waiting() -> Iterator[Callable[[float], bool]]:
    """Return a function that waits for seconds, or for a signal to end; signals are blocked in between."""
    ends = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    handled = {each for each in ends if signal.getsignal(each) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, handled)
    try:
        yield lambda seconds: signal.sigtimedwait(handled, seconds) is not None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
