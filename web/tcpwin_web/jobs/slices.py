"""Write some packets of a stored capture to a pcapng file: the stored headers, with comments.

Runs in worker processes.
"""

from pathlib import Path

from tcpwin.render import AROUND, slice_packets
from tcpwin_web.jobs.executor import JobError
from tcpwin_web.jobs.opened import open_connections
from tcpwin_web.jobs.work import FileSet


def write_slice(
    file_set: FileSet,
    out: str,
    connection: int | None,
    code: str | None,
    direction: str | None,
    start_ns: int | None,
    end_ns: int | None,
) -> None:
    """Write the packets of a connection, of a span, or the evidence of a rule's finding."""
    ids = None if connection is None else [connection]
    analysis = file_set.analyze() if ids is None else open_connections(file_set, ids)
    if connection is not None and connection >= len(analysis):
        raise JobError(f"the capture has no connection {connection}")
    findings = None
    if code is not None:
        findings = [
            each
            for each in analysis.findings
            if (each.code, each.connection) == (code, connection) and direction in (None, each.direction)
        ]
        if not findings:
            raise JobError(f"{code} found nothing there")
    with Path(out).open("xb") as file:
        slice_packets(
            analysis, file, connections=ids, start_ns=start_ns, end_ns=end_ns, findings=findings, around=AROUND
        )
