"""iperf3's JSON: one document per test (--json), or one event per line (--json-stream).

In: its lines, with one or several documents. Out: a ThroughputSample per stream and interval, the sum if there are
several streams, and the summaries. UDP tests are ignored. Source: iperf_api.c, json_finish.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tcpwin.hosts.format import Format
from tcpwin.hosts.json_documents import json_documents
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.throughput import ThroughputSample


def recognise(head: list[str]) -> int:
    """Score these lines as iperf3's JSON."""
    text = "".join(head)
    start = text.lstrip()
    if start[:1] != "{":
        return 0
    if '"event"' in start[:20] and '"data"' in text:
        return 90
    has_start = '"start"' in start[:40] and ('"connected"' in text or '"timestamp"' in text)
    return 95 if "iperf 3" in text and has_start else 80 if has_start else 0


def read(lines: Lines) -> Iterator[ThroughputSample]:
    """Yield samples of the documents in these lines."""
    test = _Test()
    for value, line in json_documents(lines):
        yield from test.read(value, line, lines)


class _Test:
    """The test that the values belong to."""

    def __init__(self) -> None:
        self._run = -1
        self._begin_ns: int | None = None
        self._omitted_ns = 0
        self._is_udp = False

    def read(self, value: Any, line: int, lines: Lines) -> Iterator[ThroughputSample]:
        """Yield samples of a whole document or one event."""
        if not isinstance(value, dict):
            lines.reject(str(value)[:100], number=line)
        elif "event" in value:
            yield from self._read_event(str(value["event"]), value.get("data"), line, lines)
        elif isinstance(value.get("start"), dict):
            self._begin(value["start"])
            for interval in _list(value, "intervals"):
                yield from self._read_interval(interval, line)
            yield from self._read_end(_dict(value, "end"), line)
        else:
            lines.reject("not an iperf3 document: it has no start", number=line)

    def _read_event(self, event: str, data: Any, line: int, lines: Lines) -> Iterator[ThroughputSample]:
        if event == "start" and isinstance(data, dict):
            self._begin(data)
        elif event == "interval":
            yield from self._read_interval(data, line)
        elif event == "end" and isinstance(data, dict):
            yield from self._read_end(data, line)
        elif event not in ("server_output_text", "server_output_json"):
            lines.reject(f"event {event[:80]}", number=line)

    def _begin(self, start: dict[str, Any]) -> None:
        self._run += 1
        seconds = _number(_dict(start, "timestamp").get("timesecs"))
        self._begin_ns = None if seconds is None else int(seconds) * 1_000_000_000
        test = _dict(start, "test_start")
        self._omitted_ns = round((_number(test.get("omit")) or 0) * 1e9)
        self._is_udp = test.get("protocol") == "UDP"

    def _read_interval(self, interval: Any, line: int) -> Iterator[ThroughputSample]:
        if not isinstance(interval, dict) or self._is_udp:
            return
        streams = _list(interval, "streams")
        for stream in streams:
            yield from self._sample(stream, line)
        if len(streams) > 1:
            for name in ("sum", "sum_bidir_reverse"):
                yield from self._sample(interval.get(name), line)

    def _read_end(self, end: dict[str, Any], line: int) -> Iterator[ThroughputSample]:
        if self._is_udp:
            return
        streams = _list(end, "streams")
        for stream in streams:
            for side in ("sender", "receiver"):
                if isinstance(stream, dict):
                    yield from self._sample(stream.get(side), line, summary_side=side)
        if len(streams) > 1:
            for name, side in (("sum_sent", "sender"), ("sum_received", "receiver")):
                for suffix in ("", "_bidir_reverse"):
                    yield from self._sample(end.get(name + suffix), line, summary_side=side)

    def _sample(self, row: Any, line: int, *, summary_side: str | None = None) -> Iterator[ThroughputSample]:
        if not isinstance(row, dict):
            return
        start, end = _number(row.get("start")), _number(row.get("end"))
        size, rate = _number(row.get("bytes")), _number(row.get("bits_per_second"))
        if start is None or end is None or size is None or rate is None:
            return
        end_ns = round(end * 1e9)
        sender = row.get("sender")
        said = {True: "sender", False: "receiver"}.get(sender) if isinstance(sender, bool) else None
        is_omitted = row.get("omitted") is True
        # iperf3 restarts at 0 after the omitted time (omit_timer_proc).
        since_ns = end_ns if is_omitted else end_ns + self._omitted_ns
        yield ThroughputSample(
            time_ns=None if self._begin_ns is None else self._begin_ns + since_ns,
            line=line,
            run=max(self._run, 0),
            stream=_whole(row, "socket"),
            start_ns=round(start * 1e9),
            end_ns=end_ns,
            transferred_bytes=int(size),
            rate_bps=float(rate),
            retransmissions=_whole(row, "retransmits"),
            cwnd_bytes=_whole(row, "snd_cwnd"),
            snd_wnd_bytes=_whole(row, "snd_wnd"),
            rtt_ns=_whole(row, "rtt", scale=1000),
            rttvar_ns=_whole(row, "rttvar", scale=1000),
            pmtu_bytes=_whole(row, "pmtu"),
            is_summary=summary_side is not None,
            is_omitted=is_omitted,
            side=summary_side or said,
        )


def _number(value: Any) -> float | int | None:
    """Return a number that is plausible as nanoseconds or bytes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e18 and math.isfinite(value) else None


def _whole(row: dict[str, Any], name: str, *, scale: int = 1) -> int | None:
    """Return a count or a time; iperf3 writes -1 if the system does not provide it."""
    value = _number(row.get(name))
    return None if value is None or value < 0 else int(value * scale)


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []


FORMAT = Format("iperf3_json", "throughput by interval: iperf3 --json and --json-stream", recognise, read)
