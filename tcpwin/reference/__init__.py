"""Published results and the lab's runs as data, and the comparison of a connection with the nearest ones.

>>> from tcpwin.reference import nearest, reference
>>> reference("cloudflare-oscil-300ms").run("170p2").counters["TcpExtTCPOFODrop"]
86
>>> nearest(rtt_ns=290_000_000, rate_bps=1e9, workload="oscillating-reader")[0].run.reference
'cloudflare-default-kernel'

Each reference is one file in `tcpwin/reference/data`, read on first use.
"""

from tcpwin.reference.article import ARTICLES, Article, Entry, Number, articles, stated_text
from tcpwin.reference.cells import Cell, is_ours, matrix
from tcpwin.reference.comparison import Comparison, Row, compare, compare_measured
from tcpwin.reference.document import (
    describe_article,
    describe_cell,
    describe_comparison,
    describe_lab_run,
    describe_reference,
    describe_run,
)
from tcpwin.reference.fits import (
    Distance,
    Fit,
    Fits,
    buffer_words,
    find_fits,
    kernel_words,
    path_words,
    result_words,
)
from tcpwin.reference.library import LIBRARY, LabRun, library
from tcpwin.reference.measured import Measured, measure_connection
from tcpwin.reference.model import Bucket, Latency, Publication, RateRange, Reference, Run
from tcpwin.reference.nearness import Nearness, nearest
from tcpwin.reference.prediction import Allowed, Prediction, predict
from tcpwin.reference.prediction_test import Against, against
from tcpwin.reference.read import reference, references
from tcpwin.reference.run_trace import Trace, read_trace, trace, write_traces
from tcpwin.reference.sockets import measure_sockets

__all__ = [
    "ARTICLES",
    "LIBRARY",
    "Against",
    "Allowed",
    "Article",
    "Bucket",
    "Cell",
    "Comparison",
    "Distance",
    "Entry",
    "Fit",
    "Fits",
    "LabRun",
    "Latency",
    "Measured",
    "Nearness",
    "Number",
    "Prediction",
    "Publication",
    "RateRange",
    "Reference",
    "Row",
    "Run",
    "Trace",
    "against",
    "articles",
    "buffer_words",
    "compare",
    "compare_measured",
    "describe_article",
    "describe_cell",
    "describe_comparison",
    "describe_lab_run",
    "describe_reference",
    "describe_run",
    "find_fits",
    "is_ours",
    "kernel_words",
    "library",
    "matrix",
    "measure_connection",
    "measure_sockets",
    "nearest",
    "path_words",
    "predict",
    "read_trace",
    "reference",
    "references",
    "result_words",
    "stated_text",
    "trace",
    "write_traces",
]
