"""A stored case and numbers of connections in, an analysis that knows these out: the rest of the capture is not read.

Runs in worker processes. What the analysis of the whole told (facts and counts of the capture, findings) comes from its
results; what the packets tell, from the connections' own, which the index finds. Where there is no index, or it does
not fit, or hosts said something, which is put beside all connections, the case is read as a whole: the answers are the
same.
"""

import json
from collections.abc import Collection
from pathlib import Path

from tcpwin.analysis import Analysis, reopen
from tcpwin.limits import Findings, read_finding
from tcpwin.report.drawing import MAX_ROWS
from tcpwin_web.jobs.work import Case
from tcpwin_web.results import layout
from tcpwin_web.results.queries import findings_of

BUCKETS = 1024
"""Of a series, as an analysis has it by default."""


def open_connections(case: Case, ids: Collection[int], *, buckets: int = BUCKETS) -> Analysis:
    """The case, of which these connections can be asked for; others only if it had to be read as a whole.

    Args:
        buckets: most in a series, where the index finds the packets: those of a case read as a whole are as by default.
    """
    return _by_index(case, ids, buckets) or case.analyze()


def _by_index(case: Case, ids: Collection[int], buckets: int) -> Analysis | None:
    index, results = case.index, case.results
    if index is None or results is None or any(each.kind == "snapshot" for each in case.files):
        return None
    try:
        told = json.loads((Path(results) / layout.ENGINE).read_bytes())
        documents = findings_of(Path(results), ids)
    except OSError:
        return None
    analysis = reopen(case.source, index, ids, told, buckets=buckets, rows=MAX_ROWS)
    if analysis is None:
        return None
    analysis.findings = Findings(tuple(read_finding(each) for each in documents))
    return analysis
