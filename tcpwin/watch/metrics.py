"""A recorder's Prometheus metrics and event stream, on a local port.

In: rounds, alerts and bundles. Out: Prometheus' text format with low-cardinality labels; events as they happen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tcpwin.errors import OutputError
from tcpwin.limits import LIMIT_NAMES
from tcpwin.watch.alerts import Alert
from tcpwin.watch.live import Live
from tcpwin.watch.run import Notice, Round

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SILENT_S = 5.0
_OWN_NAMES = ("127.0.0.1", "localhost")


class Metrics:
    """A recorder's counters."""

    def __init__(self) -> None:
        self._round: dict[str, Any] = {}
        self._strikes: Counter[str] = Counter()
        self._bundles = 0
        self._troubles = 0

    def take(self, notice: Notice) -> None:
        """Count a notice."""
        if isinstance(notice, Round):
            # Do not keep the round itself, which holds its packets.
            self._round = notice.document()
        elif isinstance(notice, Alert):
            self._strikes[notice.finding.code] += 1
        elif isinstance(notice, Path):
            self._bundles += 1
        else:
            self._troubles += 1

    def text(self) -> str:
        """Return all metrics in Prometheus' format."""
        document = self._round
        problems = document.get("problems", {})
        lines = []
        for name, kind, about, value in (
            ("packets_total", "counter", "packets received", document.get("packets", 0)),
            ("dropped_packets_total", "counter", "packets dropped by the kernel", document.get("dropped", 0)),
            ("bundles_total", "counter", "bundles written", self._bundles),
            ("troubles_total", "counter", "interface down, disk full and so on", self._troubles),
            ("connections", "gauge", "connections in the newest packets", document.get("connections", 0)),
            ("span_seconds", "gauge", "time that the newest packets cover", document.get("span_ns", 0) / 1e9),
            ("round_seconds", "gauge", "time needed to judge them", document.get("took_ns", 0) / 1e9),
        ):
            lines += [*_head(name, kind, about), f"tcpwin_watch_{name} {value}"]
        lines += _head("problems", "gauge", "connections with a problem in the newest packets, by what limited them")
        lines += [f'tcpwin_watch_problems{{limit="{limit}"}} {problems.get(limit, 0)}' for limit in LIMIT_NAMES]
        lines += _head("strikes_total", "counter", "alerts, by rule")
        lines += [f'tcpwin_watch_strikes_total{{rule="{code}"}} {n}' for code, n in sorted(self._strikes.items())]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP tcpwin_watch_{name} {about}", f"# TYPE tcpwin_watch_{name} {kind}"]


def serve(metrics: Metrics, port: int, live: Live | None = None) -> Callable[[], None]:
    """Serve ``/metrics`` and ``/events`` on the loopback interface; return a function that stops it.

    Raises:
        OutputError: the port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENT_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/events" and live is not None:
                self._stream(live)
                return
            found = path == "/metrics"
            body = metrics.text().encode() if found else b"not found: /metrics and /events are here\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", _TYPE if found else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, live: Live) -> None:
            # Another site's page may resolve its name to this host (DNS rebinding); do not show it connection
            # addresses.
            is_own = self.headers.get("Host", "").rpartition(":")[0] in _OWN_NAMES
            events = live.stream() if is_own else None
            if events is None:
                self.send_error(503 if is_own else 403)
                return
            try:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                for data in events:
                    self.wfile.write(data)
            except OSError:
                # The listener disconnected.
                self.close_connection = True
            finally:
                events.close()

        def log_message(self, *_: object) -> None:
            """Suppress the request log."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise OutputError(f"port {port} for metrics: {error.strerror or error}") from None
    Thread(target=server.serve_forever, daemon=True).start()

    def end() -> None:
        if live is not None:
            live.close()
        server.shutdown()
        server.server_close()

    return end
