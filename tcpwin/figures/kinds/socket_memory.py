"""A socket's memory use and its limit, from the receiver's `ss -m`.

- **memory (r)**: memory that the kernel charged for received segments, headers and slack included (sk_rmem_alloc).
- **buffer (rb)**: the limit of that charge, which autotuning raises (sk_rcvbuf). When r reaches rb, the kernel
  collapses the queue, then drops.
- **unread (Recv-Q)**: payload that the application has not read.
- **overhead**: r − Recv-Q, the price of metadata. In a table of the article "Optimizing TCP for high WAN throughput"
  (Cloudflare, 2022) it ranges from a third of the payload to three times the payload.
- **dropped**: segments that this socket dropped since the previous sample (``d`` of skmem).

Without samples of the receiver, the sender's are drawn: **queued (w)**, **buffer (tb)**, **Send-Q** (not yet
acknowledged) and **not sent** yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpwin.figures.drawing.curve import compact
from tcpwin.figures.drawing.kind import FigureKind, Nothing
from tcpwin.figures.drawing.panel import Panel
from tcpwin.figures.drawing.sockets import socket_curve, socket_values
from tcpwin.figures.drawing.theme import BYTES_AXIS, COLOURS

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request
    from tcpwin.hosts import SocketSample


def draw(request: Request) -> Panel:
    """Draw the receive memory of the receiver, or otherwise the send memory of the sender."""
    panel = Panel(y={**BYTES_AXIS, "rangemode": "tozero"})
    panel.traces = _receive(request) or _send(request)
    if not panel.traces:
        if not request.connection.socket_samples:
            raise Nothing(
                "no snapshot has a socket of this connection: record some with `ss -tmi` or `tcpwin snap`, and add "
                "them by --with"
            )
        raise Nothing("the samples of this connection's sockets have no memory values: record them with `ss -m`")
    return panel


def _receive(request: Request) -> list[Trace]:
    side = request.receiver

    def drawn(field: str, name: str, colour: str, dash: str) -> list[Trace]:
        return socket_curve(request, side, field, name, COLOURS[colour], symbol="circle", dash=dash, width=1.6)

    memory = drawn("rmem_alloc_bytes", "memory (r)", "memory", "solid")
    if not memory:
        return []
    overhead = socket_curve(
        request, side, _overhead, "overhead", COLOURS["overhead"], symbol="circle", dash="dot", width=1.2
    )
    return [
        *drawn("rcvbuf_bytes", "buffer (rb)", "buffer", "dash"),
        *memory,
        *drawn("recv_q_bytes", "unread", "queue", "solid"),
        *overhead,
        *_dropped(request, side),
    ]


def _send(request: Request) -> list[Trace]:
    side = request.sender
    named = (
        ("sndbuf_bytes", "buffer (tb)", "buffer", "dash"),
        ("wmem_queued_bytes", "queued (w)", "memory", "solid"),
        ("send_q_bytes", "Send-Q", "queue", "solid"),
        ("notsent_bytes", "not sent", "overhead", "dot"),
    )
    if not len(socket_values(request, side, "wmem_queued_bytes")[0]):
        return []
    traces: list[Trace] = []
    for field, name, colour, dash in named:
        traces += socket_curve(request, side, field, name, COLOURS[colour], symbol="circle", dash=dash, width=1.6)
    return traces


def _overhead(sample: SocketSample) -> int | None:
    if sample.rmem_alloc_bytes is None or sample.recv_q_bytes is None:
        return None
    return max(sample.rmem_alloc_bytes - sample.recv_q_bytes, 0)


def _dropped(request: Request, side: str) -> list[Trace]:
    times, counts = socket_values(request, side, "drops")
    grown = np.diff(counts, prepend=counts[:1])
    places = np.flatnonzero(grown > 0)
    if not len(places):
        return []
    memory_times, memory = socket_values(request, side, "rmem_alloc_bytes")
    heights = memory[np.maximum(np.searchsorted(memory_times, times[places], side="right") - 1, 0)]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "dropped",
            "x": request.seconds(times[places]),
            "y": compact(heights),
            "customdata": compact(grown[places]),
            "marker": {"color": COLOURS["loss"], "symbol": "x", "size": 8},
            "cliponaxis": False,
            "hovertemplate": "%{customdata:,d} segments dropped by %{x:.6f} s<extra></extra>",
        }
    ]


FIGURE = FigureKind(
    name="socket-memory",
    title="Socket memory",
    scope="connection",
    page=__doc__ or "",
    draw=draw,
    is_in_timeline=True,
    order=60,
)
