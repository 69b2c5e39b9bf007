"""`tcpwin whatif`: words, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from cli.command import CAPTURES, KEEP_ALIVE, SLOW_READER, refused, tcpwin

LEFT = Path(__file__).parents[1] / "paths" / "send-buffer-left.zip"
AT_SENDER = (LEFT, "--capture", "sender.pcap.gz")


def test_without_a_change_it_shows_the_path_and_ranks_the_limits() -> None:
    said = tcpwin("whatif", *AT_SENDER).stdout.decode()
    assert "path, as the capture shows it" in said
    assert "166 ms" in said
    assert "tcp_wmem 4096 16384 60000" in said
    ranked = said.partition("each limit lifted alone")[2].splitlines()
    assert ranked[2].split()[:2] == ["receive", "window"]


def test_a_change_is_predicted_with_its_interval() -> None:
    said = tcpwin("whatif", *AT_SENDER, "--set", "receiver.tcp_rmem=64M").stdout.decode()
    assert "with receiver.tcp_rmem=64M" in said
    assert "limited by  send buffer; before: receive window" in said
    assert "each limit" not in said


def test_the_document_has_what_python_has() -> None:
    done = tcpwin(
        "whatif", *AT_SENDER, "--set", "sender.tcp_wmem=1M", "--rtt", "83ms", "--loss", "0.1%", "--each", "--json"
    )
    found = json.loads(done.stdout)
    assert found["schema"] == "tcpwin/whatif/1"
    assert set(found) == {"schema", "connection", "path", "verdict", "prediction", "each", "unsaid"}
    assert found["path"]["sender"]["settings"]["net.ipv4.tcp_wmem"] == "4096 16384 60000"
    assert found["path"]["round_trip_ns"]["value"] == 166_000_000
    prediction = found["prediction"]
    low, likely, high = (prediction["duration_ns"][name] for name in ("low", "likely", "high"))
    assert low <= likely <= high
    assert prediction["gain_ns"] == prediction["before_ns"] - likely
    assert prediction["changes"] == ["sender.tcp_wmem=1M", "loss 0.1 %", "round trip 83 ms"]
    assert found["each"][0]["gain_ns"] == found["verdict"]["cost_ns"]


OPEN = ("--set", "receiver.tcp_rmem=64M", "--lift", "receiver_application")


def test_what_the_capture_cannot_say_is_one_sentence() -> None:
    assert "no prediction is possible" in refused("whatif", KEEP_ALIVE)
    assert "give it with --rate" in refused("whatif", SLOW_READER, *OPEN)
    assert "no connection 9" in refused("whatif", SLOW_READER, "--connection", 9)
    assert "no TCP connection" in refused("whatif", CAPTURES / "broken" / "only-a-header.pcap")


def test_an_invalid_change_is_wrong_usage() -> None:
    for words, said in (
        (("--set", "sender.tcp_rmem=1M"), "bounds nothing here"),
        (("--set", "receiver.tcp_rmem"), "not a setting with its value"),
        (("--loss", "1"), "write 0, 0.5% or 2%"),
        (("--loss", "100%"), "below 100 %"),
        (("--rtt", "83"), "not understood"),
        (("--lift", "weather"), "not a limit"),
    ):
        assert said in refused("whatif", SLOW_READER, *words, status=2), words
