"""A stored capture and numbers of connections in, an analysis that knows these out: the rest is not read.

Runs in worker processes. What the analysis of the whole told (facts and counts of the capture, findings) comes from its
results; what the packets tell, from the connections' own, which the index finds. Where there is no index, or it does
not fit, or hosts said something, which is put beside all connections, the whole capture is read: the answers are the
same.
"""

import json
from collections.abc import Collection
from pathlib import Path

from tcpwin.figures.drawing import MAX_ROWS
from tcpwin.limits import Analysis, Findings, read_finding
from tcpwin_web.jobs.work import FileSet
from tcpwin_web.results import layout
from tcpwin_web.results.queries import findings_of

BUCKETS = 1024
"""Of a series, as an analysis has it by default."""


def open_connections(file_set: FileSet, ids: Collection[int], *, buckets: int = BUCKETS) -> Analysis:
    """The capture, of which these connections can be asked for; others only if it had to be read as a whole.

    Args:
        buckets: most in a series, where the index finds the packets: those of a whole capture are as by default.
    """
    return _by_index(file_set, ids, buckets) or file_set.analyze()


def _by_index(file_set: FileSet, ids: Collection[int], buckets: int) -> Analysis | None:
    index, results = file_set.index, file_set.results
    if index is None or results is None or any(each.kind == "snapshot" for each in file_set.files):
        return None
    try:
        told = json.loads((Path(results) / layout.ENGINE).read_bytes())
        documents = findings_of(Path(results), ids)
    except OSError:
        return None
    analysis = Analysis.reopen(file_set.source, index, ids, told, buckets=buckets, rows=MAX_ROWS)
    if analysis is None:
        return None
    analysis.findings = Findings(tuple(read_finding(each) for each in documents))
    return analysis
