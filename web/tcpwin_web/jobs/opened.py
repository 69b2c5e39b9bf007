"""Open single connections of a stored capture without reading the rest.

Runs in worker processes. Facts, counts and findings of the whole capture come from its results; the connections'
packets are found by the index. Without a matching index, or if host samples are assigned to connections, the whole
capture is read: the answers are the same.
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
"""Default of an analysis for its series."""


def open_connections(file_set: FileSet, ids: Collection[int], *, buckets: int = BUCKETS) -> Analysis:
    """Return an analysis of these connections; others are available only if the whole capture was read.

    Args:
        buckets: maximum number per series if the index is used; a whole capture has the default.
    """
    return _by_index(file_set, ids, buckets) or file_set.analyze()


def _by_index(file_set: FileSet, ids: Collection[int], buckets: int) -> Analysis | None:
    index, results = file_set.index, file_set.results
    if index is None or results is None or any(each.kind == "snapshot" for each in file_set.files):
        return None
    try:
        facts = json.loads((Path(results) / layout.ENGINE).read_bytes())
        documents = findings_of(Path(results), ids)
    except OSError:
        return None
    analysis = Analysis.reopen(file_set.source, index, ids, facts, buckets=buckets, rows=MAX_ROWS)
    if analysis is None:
        return None
    analysis.findings = Findings(tuple(read_finding(each) for each in documents))
    return analysis
