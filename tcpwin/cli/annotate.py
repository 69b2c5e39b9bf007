"""`tcpwin annotate`: a capture with what was found at each of its packets, as a file for Wireshark."""

from __future__ import annotations

import click

from tcpwin.cli.inputs import progress
from tcpwin.cli.options import CaptureOptions, WithSnapshots, capture_options
from tcpwin.cli.program import complain
from tcpwin.cli.slice import destination, refuse_output, say_written

SCHEMA = "tcpwin/annotate/1"


@click.command(cls=WithSnapshots)
@click.argument("captures", nargs=-1, required=True, type=click.Path(allow_dash=True), metavar="FILE...")
@capture_options()
@click.option("--json", "as_json", is_flag=True, help="Say what was written as JSON.")
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
    """Write a whole capture to a file for Wireshark, whose comments say what was found at each packet.

    Every packet is there, TCP or not, under its number and with its own comments; FILE is not changed. In Wireshark
    the display filter `frame.comment contains "tcpwin"` shows those with something to say. With --filter, --from or
    --to the other packets are left out, and comments name the frames of FILE where they differ.

    FILE is a capture, several captures, a bundle, or - for standard input, as in `tcpwin analyze`.
    """
    from tcpwin.render import annotate as annotate_packets

    refuse_output(captures, out, as_json=as_json)
    analysis = options.analyze(captures, keep=True)
    with progress(analysis._source) as tell:
        written = annotate_packets(analysis, destination(out), progress=tell)
    if written.packets_skipped:
        complain(
            f"warning: {written.packets_skipped:,} packets of interfaces that the capture does not describe are left "
            "out: those after them have lower numbers"
        )
    say_written(written, SCHEMA, analysis, out, as_json=as_json)
