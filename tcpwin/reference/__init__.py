"""Published results, as data: what others measured with which settings, to compare with.

>>> from tcpwin.reference import nearest, reference
>>> reference("cloudflare-oscil-300ms").run("170p2").counters["TcpExtTCPOFODrop"]
86
>>> nearest(rtt_ns=290_000_000, rate_bps=1e9, workload="oscillating-reader")[0].run.reference
'cloudflare-default-kernel'

Each reference is one file of `tcpwin/reference/data`, read when it is first asked for.
"""

from tcpwin.reference._model import Bucket, Latency, RateRange, Reference, Run, Source
from tcpwin.reference._nearest import Nearness, nearest
from tcpwin.reference._read import reference, references

__all__ = [
    "Bucket",
    "Latency",
    "Nearness",
    "RateRange",
    "Reference",
    "Run",
    "Source",
    "nearest",
    "reference",
    "references",
]
