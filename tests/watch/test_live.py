"""Listeners of a recorder receive each round with sketches of the worst connections; other requests are
rejected.
"""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import CAPTURES
from live import HANG_S, until

import tcpwin
from tcpwin.figures import SKETCH_BUCKETS, draw_blocks, draw_sketch
from tcpwin.watch import GrowingFile, Live, Metrics, Notice, Round, Settings, Watch, serve
from tcpwin.watch.live import MOST_LISTENERS

STALLED = CAPTURES / "lab" / "zero-window-stall.pcap.gz"


def free_port() -> int:
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


@contextmanager
def served() -> Iterator[tuple[Live, int]]:
    live, port = Live("a file"), free_port()
    end = serve(Metrics(), port, live)
    try:
        yield live, port
    finally:
        end()
        until(lambda: not live._listeners)


@contextmanager
def listening(port: int, host: str = "127.0.0.1") -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    connection.request("GET", "/events", headers={"Host": f"{host}:{port}"})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def documents(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line.removeprefix(b"data: "))


def watch(path: Path, live: Live) -> dict[int, Round]:
    """Yield the rounds by their packets."""
    rounds: dict[int, Round] = {}

    def tell(notice: Notice) -> None:
        live.take(notice)
        if isinstance(notice, Round):
            rounds[notice.packets] = notice

    source = GrowingFile(str(path))
    Watch(source, Settings(duration_ns=6 * 10**9), tell).run()
    source.close()
    return rounds


def test_listeners_receive_each_round(tmp_path: Path) -> None:
    path = tmp_path / "stalled.pcap"
    path.write_bytes(gzip.decompress(STALLED.read_bytes()))
    with served() as (live, port), listening(port) as answer:
        assert answer.getheader("Content-Type") == "text/event-stream"
        until(lambda: live._listeners)
        rounds = watch(path, live)
        notice = next(documents(answer))
    assert (notice["schema"], notice["name"], notice["round"]["type"]) == ("tcpwin/watch/1", "a file", "round")
    [worst] = notice["worst"]
    analysis = rounds[notice["round"]["packets"]].analysis
    [connection] = analysis.worst(1)
    assert (worst["text"], worst["fix"]) == (connection.verdict.text, connection.verdict.fix)
    assert worst["ends"] == [f"client {connection.a}", f"server {connection.b}"]
    view = connection.view(buckets=SKETCH_BUCKETS)
    assert worst["sketch"]["window"] == draw_sketch(view, connection.verdict.direction or "").window
    assert worst["sketch"]["window"].startswith("M")
    assert "TW201" in {each["rule"] for each in notice["lately"]}


def test_nothing_is_drawn_while_nobody_listens(tmp_path: Path) -> None:
    path = tmp_path / "stalled.pcap"
    path.write_bytes(gzip.decompress(STALLED.read_bytes()))
    with served() as (live, port):
        watch(path, live)
        with listening(port) as answer:
            notice = next(documents(answer))
    assert notice["worst"] is None
    assert notice["round"]["problems"] == {"receiver_application": 1}


def test_listeners_after_the_last_packet_receive_the_worst_too(tmp_path: Path) -> None:
    path = tmp_path / "stalled.pcap"
    path.write_bytes(gzip.decompress(STALLED.read_bytes()))
    rounds: list[Round] = []
    ended = threading.Event()
    with served() as (live, port), ThreadPoolExecutor(1) as pool:
        source = GrowingFile(str(path))

        def tell(notice: Notice) -> None:
            live.take(notice)
            if isinstance(notice, Round):
                rounds.append(notice)

        settings = Settings(every_ns=10**8)
        recorder = Watch(source, settings, tell, is_ended=ended.is_set, is_wanted=lambda: live.is_wanted)
        running = pool.submit(recorder.run)
        try:
            total = tcpwin.analyze(path).capture.packets
            until(lambda: bool(rounds) and rounds[-1].packets == total)
            before = len(rounds)
            with listening(port) as answer:
                notice = next(each for each in documents(answer) if each["worst"] is not None)
            assert notice["round"]["packets"] == total
            assert [each["limit"] for each in notice["worst"]] == ["receiver_application"]
            # One alert was enough; there is no second.
            assert len(rounds) == before + 1
            assert len({each["rule"] for each in notice["lately"]}) == len(notice["lately"])
        finally:
            ended.set()
            running.result()
            source.close()


def test_other_names_and_too_many_are_refused() -> None:
    with served() as (_, port):
        with listening(port, "evil.example") as answer:
            assert answer.status == 403
        with ExitStack() as stack:
            for _ in range(MOST_LISTENERS):
                stack.enter_context(listening(port))
            with listening(port) as answer:
                assert answer.status == 503


@pytest.mark.parametrize(
    ("name", "direction"), [("zero-window-stall", "a_to_b"), ("slow-reader", "b_to_a"), ("loss-1-percent", "b_to_a")]
)
def test_blocks_are_the_sketch_in_characters(name: str, direction: str) -> None:
    [connection] = tcpwin.analyze(CAPTURES / "lab" / f"{name}.pcap.gz").worst(1)
    view = connection.view(buckets=SKETCH_BUCKETS)
    window, flight = draw_blocks(view, direction)
    assert len(window) == len(flight) == 20
    assert set(window + flight) <= set(" ▁▂▃▄▅▆▇█")
    assert "█" in window + flight
