"""Kernel values of a connection's socket (`ss`) over the capture's time.

In: a request, a side, a field of SocketSample. Out: times, values, curves. Samples are unchanged; their times are
moved by the clock offset that the join found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcpwin.figures.drawing.curve import compact, spread, thin

if TYPE_CHECKING:
    from tcpwin.figures.drawing.panel import Trace
    from tcpwin.figures.drawing.request import Request
    from tcpwin.hosts import SocketSample

MARKS = 100
"""Maximum number of samples that are marked if no line connects them."""
JOINED_MARKS = 60
"""Maximum number of samples that are marked on a line: more would merge into a band on a phone."""
Reader = Callable[["SocketSample"], float | None]


def socket_values(request: Request, side: str, field: str | Reader) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return times by the capture's clock and values of a field, within the span, in order of time.

    Args:
        field: a name, as in SocketSample (a zero that `ss` omits counts as 0), or a function that reads the value.
    """
    read: Reader = field if callable(field) else _reader(field)
    found: list[tuple[int, int]] = []
    for host, of, samples in request.connection.analysis.sockets_of(request.connection.id):
        if of != side:
            continue
        offset_ns = host.clock.offset_ns if host.clock is not None else 0
        for each in samples:
            if each.time_ns is None:
                continue
            time_ns, value = each.time_ns + offset_ns, read(each)
            if value is not None and request.start_ns <= time_ns <= request.end_ns:
                found.append((time_ns, int(value)))
    found.sort(key=lambda each: each[0])
    times = np.array([each[0] for each in found], dtype=np.int64)
    return times, np.array([each[1] for each in found], dtype=np.int64)


def _reader(field: str) -> Reader:
    def read(sample: SocketSample) -> float | None:
        if field == "cwnd_bytes":
            return sample.cwnd_bytes
        if field == "snd_wnd_bytes":
            # Kernels before 5.4 do not report it, and ss before 5.18 does not print it: absent is not zero.
            return sample.snd_wnd_bytes
        return sample.count(field)

    return read


def socket_curve(
    request: Request,
    side: str,
    field: str | Reader,
    name: str,
    colour: str,
    *,
    symbol: str,
    unit: str = "B",
    is_joined: bool = True,
    dash: str = "dot",
    width: float = 1,
    **more: Any,
) -> list[Trace]:
    """Draw a field, sample by sample; return nothing if no sample has it.

    Args:
        symbol: symbol of each sample, if there are few.
        is_joined: steps connect the samples.
    """
    times, values = socket_values(request, side, field)
    if not len(times):
        return []
    if is_joined:
        times, values = thin(times, values, min(request.points, 4 * MARKS))
    else:
        times, values = spread(times, values, MARKS)
    return [
        {
            "type": "scatter",
            "mode": _mode(len(times), is_joined),
            "name": name,
            "x": request.seconds(times),
            "y": compact(values),
            "line": {"color": colour, "shape": "hv", "dash": dash, "width": width},
            "marker": {"color": colour, "symbol": symbol, "size": 5},
            "hovertemplate": f"%{{y:,d}} {unit} at %{{x:.6f}} s<extra>{name}</extra>",
            **more,
        }
    ]


def _mode(count: int, is_joined: bool) -> str:
    if not is_joined:
        return "markers"
    return "lines+markers" if count <= JOINED_MARKS else "lines"
