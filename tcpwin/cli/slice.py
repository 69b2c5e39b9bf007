"""`tcpwin slice` and `tcpwin annotate`: packets of a capture as a pcapng file with comments."""

from __future__ import annotations

import json
import sys
from typing import IO, TYPE_CHECKING, Any

import click

from tcpwin.cli import completion
from tcpwin.cli.io import ConnectionNumber, check_connection, complain, progress, spare_captures
from tcpwin.cli.options import (
    SNAPSHOTS,
    CaptureOptions,
    WithSnapshots,
    capture_options,
    check_span,
    connection_span,
    resolve_span,
)
from tcpwin.cli.rules import chosen_rules
from tcpwin.errors import OutputError

if TYPE_CHECKING:
    from tcpwin.limits import Analysis, Finding, Slice

SCHEMA = "tcpwin/slice/1"


@click.command("slice", cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options(*SNAPSHOTS, "filter")
@click.option(
    "--connection",
    "connections",
    type=ConnectionNumber(),
    multiple=True,
    metavar="N",
    help="Packets of connection N; may be repeated.",
)
@click.option(
    "--finding",
    "rules",
    multiple=True,
    metavar="RULE",
    shell_complete=completion.one_rule,
    help="Frames that prove the findings of a rule, and the packets around them: TW201.",
)
@click.option(
    "--around",
    type=click.IntRange(0, 10_000),
    metavar="N",
    help="Segments before and after each of them; default: 20.",
)
@connection_span
@click.option("--headers-only", is_flag=True, help="Omit the payload.")
@click.option(
    "--anonymize",
    is_flag=True,
    help="Headers only, without comments and names; addresses are replaced, prefixes and ports kept.",
)
@click.option("--shift-times", is_flag=True, help="With --anonymize: move the first packet to 2000-01-01.")
@click.option("--no-comments", is_flag=True, help="Write the packets as they are.")
@click.option("--json", "as_json", is_flag=True, help="Write a summary as JSON.")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="OUT",
    help="Output file, always pcapng; - is standard output.",
)
def slice(
    captures: tuple[str, ...],
    options: CaptureOptions,
    connections: tuple[int, ...],
    rules: tuple[str, ...],
    around: int | None,
    first: str | None,
    last: str | None,
    headers_only: bool,
    anonymize: bool,
    shift_times: bool,
    no_comments: bool,
    as_json: bool,
    out: str,
) -> None:
    """Write packets of a connection, of a time span, or those that prove a finding, to a file for Wireshark.

    Packets keep their payload, times, interfaces and comments. Added comments explain each packet: the cause of a
    retransmission, zero windows, full windows, the findings that it proves, and on a connection's first packet its
    limit. With a time span, the handshakes of the connections are included.

    FILE is a capture, several captures, a bundle, or - for standard input, as in `tcpwin analyze`.
    """
    from tcpwin.render import AROUND, slice_anonymized, slice_packets

    if not connections and not rules and first is None and last is None:
        raise click.UsageError(
            "select packets with --connection, --finding, or --from and --to; `tcpwin annotate` writes all"
        )
    if rules and (first is not None or last is not None):
        raise click.UsageError("--finding selects frames itself: --from and --to do not apply")
    if around is not None and not rules:
        raise click.UsageError("--around goes with --finding")
    if shift_times and not anonymize:
        raise click.UsageError("--shift-times goes with --anonymize")
    check_span(first, last)
    chosen = {rule.code for rule in chosen_rules(rules, ())} if rules else set()
    refuse_output(captures, out, as_json=as_json)
    analysis = options.analyze(captures, keep=True)
    for number in connections:
        check_connection(number, len(analysis))
    choices: dict[str, Any] = {"connections": connections or None, "headers_only": headers_only}
    if chosen:
        choices["findings"] = _findings(analysis, chosen, connections)
        choices["around"] = AROUND if around is None else around
    choices["start_ns"], choices["end_ns"] = resolve_span(
        first,
        last,
        origin_ns=_origin_ns(analysis, connections),
        capture_ns=analysis.capture.first_time_ns or 0,
    )
    with progress(analysis._source) as report_progress:
        if anonymize:
            written = slice_anonymized(
                analysis, destination(out), shift_times=shift_times, progress=report_progress, **choices
            )
        else:
            written = slice_packets(
                analysis, destination(out), comments=not no_comments, progress=report_progress, **choices
            )
    say_written(written, SCHEMA, analysis, out, as_json=as_json)


def refuse_output(captures: tuple[str, ...], out: str, *, as_json: bool) -> None:
    """Reject an output that is an input, or two outputs to one place.

    Raises:
        UsageError: either is the case.
    """
    if out == "-" and as_json:
        raise click.UsageError("--json and -o - exclude each other: both write to standard output")
    if out == "-" and sys.stdout.isatty():
        raise click.UsageError("pcapng cannot be shown in a terminal: name a file with -o OUT")
    spare_captures(captures, None if out == "-" else out)


def destination(out: str) -> str | IO[bytes]:
    """Return the destination of the packets."""
    return sys.stdout.buffer if out == "-" else out


def say_written(written: Slice, schema: str, analysis: Analysis, out: str, *, as_json: bool) -> None:
    """Report what was written, if standard output is free for that."""
    from dataclasses import asdict

    from tcpwin.units import count_text, name_text

    if as_json:
        click.echo(json.dumps({"schema": schema, "name": analysis.name, "file": out, **asdict(written)}))
    elif out != "-":
        packets = count_text(written.packets, "packet")
        click.echo(f"{name_text(out)}: {packets}, {written.packets_commented:,} with comments")


def _findings(analysis: Analysis, codes: set[str], connections: tuple[int, ...]) -> list[Finding]:
    """Return the findings of these rules, of the connections or of all.

    Raises:
        OutputError: there are none.
    """
    found = [each for each in analysis.findings if each.code in codes]
    if connections:
        found = [each for each in found if each.connection in connections]
    if not found:
        where = f"connection {', '.join(map(str, connections))} of {analysis.name}" if connections else analysis.name
        raise OutputError(f"{', '.join(sorted(codes))} found nothing in {where}: `tcpwin check` lists the findings")
    return found


def _origin_ns(analysis: Analysis, connections: tuple[int, ...]) -> int:
    """Return the origin of the span's seconds."""
    if connections:
        return min(analysis.connections[number].start_ns for number in connections)
    return analysis.capture.first_time_ns or 0


ANNOTATE_SCHEMA = "tcpwin/annotate/1"


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options()
@click.option("--json", "as_json", is_flag=True, help="Write a summary as JSON.")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True),
    metavar="OUT",
    help="Output file, always pcapng; - is standard output.",
)
def annotate(
    captures: tuple[str, ...],
    options: CaptureOptions,
    as_json: bool,
    out: str,
) -> None:
    """Write a whole capture to a file for Wireshark, with comments on the packets that have events.

    All packets are included, TCP or not, under their numbers and with their own comments; FILE is not changed. In
    Wireshark the display filter `frame.comment contains "tcpwin"` shows the commented packets. With --filter, --from or
    --to the other packets are left out, and comments give the frame numbers of FILE if they differ.

    FILE is a capture, several captures, a bundle, or - for standard input, as in `tcpwin analyze`.
    """
    from tcpwin.render import annotate as annotate_packets

    refuse_output(captures, out, as_json=as_json)
    analysis = options.analyze(captures, keep=True)
    with progress(analysis._source) as report_progress:
        written = annotate_packets(analysis, destination(out), progress=report_progress)
    if written.packets_skipped:
        complain(
            f"warning: {written.packets_skipped:,} packets of interfaces that the capture does not describe are left "
            "out: those after them have lower numbers"
        )
    say_written(written, ANNOTATE_SCHEMA, analysis, out, as_json=as_json)
