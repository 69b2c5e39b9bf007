"""A sender that waits until a third of a full window is free is limited by the window, not by its application.

``window-in-bursts.zip`` is the bundle of a run of library/window-1ms-700mbps with 4 MB instead of 50. Linux sends what
the window allows, then waits for room for more (`tcp_tso_should_defer`, net/ipv4/tcp_output.c); each burst ends with a
short segment with PSH, as if a write ended. Lifted alone, the window saves 37 % of the time, and the send buffer
nothing (`tcpwin lab lift`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpwin

KEPT = Path(__file__).with_name("window-in-bursts.zip")


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_the_window_is_the_limit_at_both_ends(end: str) -> None:
    [connection] = tcpwin.analyze(KEPT, capture=f"{end}.pcap.gz").connections
    verdict = connection.verdict
    assert (verdict.limit, verdict.owner) == ("receiver_window", "client_host")
    assert verdict.share > 0.8
    assert verdict.cost_ns == pytest.approx(0.37 * connection.duration_ns, rel=0.3)
