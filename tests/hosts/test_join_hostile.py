"""False `ss` text next to a capture causes no traceback, and no absurd number is certain."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hosts.joined import Transfer, socket_text, write_pcap, write_stamp
from spread import some_by_day

from tcpwin.limits import analyze
from tcpwin.render import render, render_connection

SCHEMA = json.loads(files("tcpwin.analysis").joinpath("schema.json").read_text(encoding="utf8"))


def document(capture: Path, snapshot: Path) -> dict[str, Any]:
    """Return the connection's document, which must match the schema and include a text."""
    analysis = analyze(capture, snapshots=[snapshot])
    file = io.StringIO()
    analysis.write_json(file, connection=0, events=True)
    found: dict[str, Any] = json.loads(file.getvalue(), parse_constant=pytest.fail)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    assert render(analysis)
    assert render_connection(analysis.connections[0])
    return found


HUGE = "9" * 5000
HOSTILE = {
    "huge counts": "mss:1000 cwnd:10 bytes_acked:1000000000000000000 bytes_received:1000000000000000000",
    "beyond 64 bits": f"mss:1000 cwnd:10 bytes_acked:{10**40} bytes_sent:{10**40} snd_wnd:{10**40} busy:{10**40}ms",
    "the last of 63 bits": f"mss:1000 cwnd:10 bytes_acked:{2**63 - 1} bytes_received:{2**63} bytes_sent:{2**64 - 1}",
    "below zero": "mss:-1000 cwnd:-10 bytes_acked:-5 bytes_received:-5 bytes_sent:-7 snd_wnd:-9 wscale:-1,-1 busy:-5ms",
    "too many digits": f"bytes_acked:{HUGE} cwnd:{HUGE} mss:{HUGE}",
    "no numbers": "bytes_acked:nan cwnd:inf mss:1e400 rtt:nan/inf snd_wnd:nan busy:infms",
    "resent more than sent": "mss:1000 bytes_sent:1000 bytes_retrans:99999999 bytes_acked:3000",
    "absurd shifts": "wscale:255,300 mss:1000 cwnd:10 bytes_acked:1",
    "a word of a megabyte": "x" * 1_500_000,
}


@pytest.mark.parametrize(
    "is_cut", some_by_day([True, False], of=2), ids=lambda is_cut: "without SYN" if is_cut else "whole"
)
@pytest.mark.parametrize("tokens", HOSTILE.values(), ids=HOSTILE)
def test_hostile_values_are_never_a_traceback_nor_sure(tmp_path: Path, tokens: str, is_cut: bool) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    if is_cut:
        content = capture.read_bytes()
        capture.write_bytes(content[:24] + content[24 + 74 + 74 + 70 :])
    path = tmp_path / "ss.txt"
    count = 2 if len(tokens) > 100_000 else 20
    path.write_text(
        "".join(
            write_stamp(time_ns) + socket_text(transfer.server, transfer.client, tokens)
            for time_ns in transfer.sample_times()[:count]
        )
    )
    found = document(capture, path)
    [only] = found["hosts"]
    assert only["sockets_matched"] == count
    assert only["clock"]["method"] == "assumed"
    assert only["clock"]["offset_ns"] == 0
    assert only["clock"]["uncertainty_ns"] is None
    samples = found["connections"][0]["snapshots"]
    assert [each["disagreements"] for each in samples] == [[]] * count
    for way in ("a_to_b", "b_to_a"):
        assert found["connections"][0][way]["window_scale_shift"] == (None if is_cut else 7)


STAMPS = {
    "all the same": [0] * 20,
    "backwards": [-place * 50_000_000 for place in range(20)],
    "beyond the calendar": [8_000_000_000_000_000_000 - 1_700_000_000_000_000_000] * 20,
    "centuries apart": [place * 2 * 10**17 for place in range(20)],
}


@pytest.mark.parametrize("offsets", STAMPS.values(), ids=STAMPS)
def test_hostile_stamps_are_never_a_traceback(tmp_path: Path, offsets: list[int]) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    path = tmp_path / "ss.txt"
    first_ns = transfer.sample_times()[-1]
    path.write_text(
        "".join(
            write_stamp(first_ns + offset_ns)
            + socket_text(
                transfer.server,
                transfer.client,
                f"wscale:7,7 mss:1000 cwnd:10 bytes_sent:{place * 5000 + 2000} bytes_acked:{place * 5000 + 1000}",
            )
            for place, offset_ns in enumerate(offsets)
        )
    )
    [only] = document(capture, path)["hosts"]
    assert only["sockets"] == 20
    assert (only["clock"]["method"], only["clock"]["uncertainty_ns"]) == ("assumed", None)
