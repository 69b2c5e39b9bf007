"""TW507 reset-by-device: RSTs with another TTL or sooner than the peer, and those of the peer."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.boxes import RTT_S, answer, codes, exchange, reset

from tcpwin.render import render


@pytest.mark.parametrize("by", ["a", "b"])
@pytest.mark.parametrize("six", [False, True], ids=["IPv4", "IPv6"])
def test_a_reset_with_another_ttl_is_a_devices(tmp_path: Path, by: str, six: bool) -> None:
    near = "a" if by == "b" else "b"
    verdict, analysis = answer(reset(exchange(near=near, six=six), by, RTT_S, "ttl 57"), tmp_path)
    assert (verdict.limit, verdict.owner, verdict.is_problem) == ("middlebox", "network", True)
    assert codes(analysis) >= {"TW507"}
    assert not codes(analysis) & {"TW501", "TW508"}
    assert "TTL 57" in verdict.reason or "64" in verdict.reason
    name = "client" if by == "a" else "server"
    assert f"reset in the name of the {name}" in render(analysis)


def test_a_reset_that_the_peer_can_have_sent_is_its_own(tmp_path: Path) -> None:
    verdict, analysis = answer(reset(exchange(), "b", RTT_S), tmp_path)
    assert verdict.limit != "middlebox"
    assert "TW501" in codes(analysis)
    assert "reset by the server" in render(analysis)
    # One router more or less is another path.
    verdict, _ = answer(reset(exchange(), "b", RTT_S, "ttl 63"), tmp_path)
    assert verdict.limit != "middlebox"


def test_a_reset_sooner_than_the_round_trip(tmp_path: Path) -> None:
    verdict, analysis = answer(reset(exchange(), "b", 0.004), tmp_path)
    assert (verdict.limit, codes(analysis) & {"TW501", "TW507"}) == ("middlebox", {"TW507"})
    # Near the peer every answer is soon.
    verdict, _ = answer(reset(exchange(near="b"), "b", 0.0001), tmp_path)
    assert verdict.limit != "middlebox"
