"""One flow of a connection in, a plotly figure of its receive window and bytes in flight out.

Bounded whatever the length, since a series is: three points a bucket.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpwin import Series
from tcpwin_web._flow import Flow

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter


def draw_window_and_flight(flow: Flow) -> "Figure":
    """Draw what the receiver offers beside what the sender has outstanding."""
    from plotly.graph_objects import Figure  # 40 MB of package: loaded when a figure is asked for

    connection = flow.connection
    window = connection.series("receive_window", direction=flow.name)
    flight = connection.series("flight", direction=flow.name)
    figure = Figure(
        [
            _curve(window, connection.start_ns, "receive window", "#2563eb"),
            _curve(flight, connection.start_ns, "bytes in flight", "#c2410c"),
        ]
    )
    figure.update_layout(
        template="none",
        margin={"l": 70, "r": 20, "t": 20, "b": 50},
        legend={"orientation": "h", "y": 1.12},
        xaxis={"title": {"text": "seconds since the connection began"}},
        yaxis={"title": {"text": "bytes"}, "rangemode": "tozero"},
    )
    return figure


def _curve(series: Series, start_ns: int, name: str, colour: str) -> "Scatter":
    """Draw each bucket as a stroke from its least to its greatest value, then hold its last value."""
    from plotly.graph_objects import Scatter

    values: np.ndarray[Any, Any] = np.stack((series.min, series.max, series.last), axis=1)
    return Scatter(
        x=np.repeat((series.time_ns - start_ns) / 1e9, 3),
        y=values.ravel(),
        name=name,
        mode="lines",
        line={"shape": "hv", "width": 1.5, "color": colour},
    )
