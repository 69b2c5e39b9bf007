"""Numbers of a recorder for Prometheus, and what it sees as events, on a port of this host.

In: rounds, strikes and bundles. Out: Prometheus' text format, of which every label has few values; events as they come.
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
from tcpwin.watch.live import Live
from tcpwin.watch.run import Round, Told
from tcpwin.watch.strikes import Strike

_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SILENT_S = 5.0
_OWN_NAMES = ("127.0.0.1", "localhost")


class Metrics:
    """What a recorder counts."""

    def __init__(self) -> None:
        self._round: dict[str, Any] = {}
        self._strikes: Counter[str] = Counter()
        self._bundles = 0
        self._troubles = 0

    def take(self, told: Told) -> None:
        """Count what happened."""
        if isinstance(told, Round):
            # Not the round itself, which holds its packets.
            self._round = told.document()
        elif isinstance(told, Strike):
            self._strikes[told.finding.code] += 1
        elif isinstance(told, Path):
            self._bundles += 1
        else:
            self._troubles += 1

    def text(self) -> str:
        """All numbers, as Prometheus reads them."""
        document = self._round
        problems = document.get("problems", {})
        lines = []
        for name, kind, about, value in (
            ("packets_total", "counter", "packets that came", document.get("packets", 0)),
            ("dropped_packets_total", "counter", "packets that the kernel dropped", document.get("dropped", 0)),
            ("bundles_total", "counter", "bundles that were written", self._bundles),
            ("troubles_total", "counter", "interface down, disk full and so on", self._troubles),
            ("connections", "gauge", "connections in the newest packets", document.get("connections", 0)),
            ("span_seconds", "gauge", "time that the newest packets cover", document.get("span_ns", 0) / 1e9),
            ("round_seconds", "gauge", "judging them took so long", document.get("took_ns", 0) / 1e9),
        ):
            lines += [*_head(name, kind, about), f"tcpwin_watch_{name} {value}"]
        lines += _head("problems", "gauge", "connections with a problem in the newest packets, by what limited them")
        lines += [f'tcpwin_watch_problems{{limit="{limit}"}} {problems.get(limit, 0)}' for limit in LIMIT_NAMES]
        lines += _head("strikes_total", "counter", "findings that were new, by rule")
        lines += [f'tcpwin_watch_strikes_total{{rule="{code}"}} {n}' for code, n in sorted(self._strikes.items())]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP tcpwin_watch_{name} {about}", f"# TYPE tcpwin_watch_{name} {kind}"]


def serve(metrics: Metrics, port: int, live: Live | None = None) -> Callable[[], None]:
    """Serve them at ``/metrics``, and rounds at ``/events``, on the loopback; gives what ends it.

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
            # A page of another site may have its own name lead here; addresses of connections are none of its business.
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
                # Whoever listened has gone.
                self.close_connection = True
            finally:
                events.close()

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

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
