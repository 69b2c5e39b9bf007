"""What limited each of the lab's runs, told by captures that are not whole: the same cause, or that it is not known.

Written down first: the cause of a run is that of `lab_table`. What a capture lacks may hide it, and never makes another
cause likely or sure. Where the packets still show the cause it is to be named: beside the sender all but `HIDDEN` do.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from findings import incomplete
from findings.lab_table import RUNS
from lab.selection import COPIES, SCENARIOS

import tcpwin
from tcpwin.findings import Connection, Verdict
from tcpwin.findings._verdict import judge_connection, main_direction

CAPTURES = Path(__file__).resolve().parents[2] / "captures" / "lab"
BLIND = ("data only", "ACKs only")
"""Half of each exchange says nothing of a flight."""
UNSCALED = ("without SYN", "without SYNs", "second half", "options cut")
"""The scale of the windows is not known; in the run without scaling the SYN/ACK alone still tells."""
BESIDE_RECEIVER = ("without SYN/ACK", "every 50th dropped")
"""What is told there as well. Without the handshake the way to the sender is known by timestamps, and not soon."""
CLOSES = ("zero_window_stall5s", "slow_reader", "oscil_10mbit_300ms_170p2_vanilla")
"""Runs in which the window closes: zero is zero at every scale."""
PLAIN = ("no_wscale_85ms",)
HIDDEN = {
    # Super-segments of any size: without the SYN/ACK's MSS a full one is not told from the end of a write.
    ("offload_on_bigframes", "without SYNs"): ("unknown",),
    ("offload_on_bigframes", "second half"): ("unknown",),
    ("offload_on_bigframes", "options cut"): ("unknown",),
    # Half of the time the path, half of it the window, which without a scale is told in part.
    ("oscil_10mbit_300ms_512m2_guard_vethtruesize", "without SYN"): ("path", "unknown"),
    ("oscil_10mbit_300ms_512m2_guard_vethtruesize", "without SYNs"): ("path", "unknown"),
    ("oscil_10mbit_300ms_512m2_guard_vethtruesize", "options cut"): ("path", "unknown"),
    # All is sent before the last third, which waits for its ACKs.
    ("wscale_85ms", "second half"): ("application", "unknown"),
}


def judged(folder: Path, capture: incomplete.Capture, way: str) -> tuple[Verdict, Verdict]:
    """The verdict on the connection with most data, by its budget alone and with what the rules found."""
    path = folder / "incomplete.pcap"
    path.write_bytes(incomplete.incomplete(capture, way))
    analysis = tcpwin.analyze(path)
    connection = max(analysis.connections, key=_bytes)
    assert isinstance(connection, Connection)
    return connection.verdict, judge_connection(connection, analysis.findings.of(connection.id))


def _bytes(connection: tcpwin.Connection) -> int:
    name = main_direction(connection)
    if name is None:
        return 0
    data = connection.a_to_b if name == "a_to_b" else connection.b_to_a
    return max(data.unique_bytes, data.acked_bytes)


def expect(scenario: str, end: str, way: str, verdict: Verdict) -> None:
    row = RUNS[scenario]
    cause = row.departs.get((end, False), (row.item, row.group, ""))[1]
    told = (scenario, end, way, verdict.text)
    if way in BLIND:
        assert verdict.limit == "unknown", told
        return
    assert verdict.limit in (cause, "unknown") or verdict.confidence == "low", told
    if way in UNSCALED and scenario not in (*CLOSES, *PLAIN):
        assert verdict.confidence != "high", told
    hidden = HIDDEN.get((scenario, way))
    if hidden is not None:
        assert verdict.limit in hidden, told
    elif end == "snd" or way in BESIDE_RECEIVER:
        assert verdict.limit == cause, told


def expect_all(folder: Path, path: Path, scenario: str, end: str) -> None:
    capture = incomplete.read(path)
    for way in incomplete.WAYS:
        for verdict in judged(folder, capture, way):
            expect(scenario, end, way, verdict)


@pytest.mark.parametrize(("scenario", "end", "copy"), COPIES, ids=[copy for _, _, copy in COPIES])
def test_the_projects_captures(tmp_path: Path, scenario: str, end: str, copy: str) -> None:
    expect_all(tmp_path, CAPTURES / f"{copy}.pcap.gz", scenario, end)


@pytest.mark.parametrize("end", ["snd", "rcv"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_labs_captures(tmp_path: Path, reference_captures: Path, scenario: str, end: str) -> None:
    expect_all(tmp_path, reference_captures / "lab" / scenario / f"{end}.pcap.gz", scenario, end)


def test_nothing_is_lost_by_the_helper(tmp_path: Path) -> None:
    path = CAPTURES / "cooked-any.pcap.gz"
    whole = incomplete.read(path)
    assert len(whole.records) == 5540
    assert sum(not record.flags & incomplete.SYN for record in whole.records) == 5538
    for way, packets in {"without SYN": 5539, "without SYNs": 5538, "second half": 2770, "options cut": 5540}.items():
        (tmp_path / "x.pcap").write_bytes(incomplete.incomplete(whole, way))
        assert tcpwin.analyze(tmp_path / "x.pcap").capture.packets == packets
