"""Window scales of captures without SYN: exact with `wscale:`, otherwise a range that contains the truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import all_cases
from hosts.joined import Transfer, copied_run, moved, socket_text, ss_text, without_start, write_pcap, write_stamp
from lab.runs import Run
from lab.selection import COPIES, LATE, on
from spread import some_by_day

import tcpwin
from tcpwin.hosts import ScaleClaim, SnapshotFile, SocketSample
from tcpwin.hosts.scale import find_scale
from tcpwin.limits import analyze

BUNDLES = Path(__file__).parents[2] / "captures" / "bundles"
WITH_SYN = [name for scenario, _, name in COPIES if scenario not in LATE]


def of(text: str) -> SnapshotFile:
    return SnapshotFile(text.encode())


def truth_of(run: Run) -> dict[str, int]:
    """Return the shifts of both sides' windows from the SYNs' option, which `ss` shows at the sender."""
    [shifts] = {sample.window_scales for sample in run.samples("snd")}
    peer, own = shifts or (0, 0)
    return {run.sender: own, "b" if run.sender == "a" else "a": peer}


def scales(connection: tcpwin.Connection) -> dict[str, tuple[str, int | None]]:
    """Return state and shift of each side's windows."""
    ways = {"b": connection.a_to_b.window_scale, "a": connection.b_to_a.window_scale}
    return {side: (scale.state, scale.shift) for side, scale in ways.items()}


@on(LATE)
@pytest.mark.parametrize("end", ["snd", "rcv"])
@pytest.mark.parametrize(
    "by_ns", some_by_day([-7_200_000_000_000, 0], of=2), ids=lambda by_ns: "two hours behind" if by_ns else "right"
)
def test_scale_of_a_capture_without_syn_is_exact_by_either_socket(run: Run, end: str, by_ns: int) -> None:
    analysis = analyze(run.capture, snapshots=[of(moved(ss_text(run, end), by_ns))])
    [connection] = analysis.connections
    # mid_connection_noSYN: wscale:7,7.
    assert scales(connection) == {"a": ("given", 7), "b": ("given", 7)}
    settled = [sample for sample in run.samples(end) if sample.window_scales is not None]
    side = connection.snapshots[0].side
    assert [(claim.side, claim.shift, claim.by, claim.samples, claim.against) for claim in connection.scale_claims] == [
        ("b" if side == "a" else "a", 7, side, len(settled), 0),
        (side, 7, side, len(settled), 0),
    ]
    assert all(claim.is_exact for claim in connection.scale_claims)
    windows = {sample.number("snd_wnd") for sample in run.samples("snd")}
    data = connection.a_to_b if run.sender == "a" else connection.b_to_a
    assert data.receive_window_max_bytes is not None
    assert data.receive_window_max_bytes >= max(windows)


@on(LATE)
def test_without_snapshots_it_is_a_range_that_holds_the_truth(run: Run) -> None:
    [connection] = analyze(run.capture).connections
    for side, scale in (("b", connection.a_to_b.window_scale), ("a", connection.b_to_a.window_scale)):
        assert (scale.state, scale.shift) == ("unknown", None)
        assert scale.shift_min <= truth_of(run)[side] <= scale.shift_max


@pytest.mark.parametrize("end", ["snd", "rcv"])
@pytest.mark.parametrize("name", some_by_day(WITH_SYN, of=6))
def test_windows_without_the_syns_are_those_of_the_full_capture(name: str, end: str, tmp_path: Path) -> None:
    run = copied_run(name)
    capture = without_start(run.capture, tmp_path)
    [bare] = analyze(capture).connections
    for side, scale in (("b", bare.a_to_b.window_scale), ("a", bare.b_to_a.window_scale)):
        assert (scale.state, scale.shift) == ("unknown", None)
        assert scale.shift_min <= truth_of(run)[side] <= scale.shift_max
    [whole] = analyze(run.capture, buckets=1 << 16).connections
    [connection] = analyze(capture, snapshots=[of(ss_text(run, end))], buckets=1 << 16).connections
    assert scales(connection) == {side: ("given", shift) for side, shift in truth_of(run).items()}
    # Without a SYN, a capture may confuse initiator and responder.
    swapped = connection.a != whole.a
    for way in ("a_to_b", "b_to_a"):
        other = {"a_to_b": "b_to_a", "b_to_a": "a_to_b"}[way] if swapped else way
        full = whole.series("receive_window", direction=way)
        cut = connection.series("receive_window", direction=other)
        # The truncated capture lacks the SYNs and the values of the first ten segments, sent before any ACK.
        shared = np.isin(full.time_ns, cut.time_ns)
        assert full.width_ns == cut.width_ns == 1
        assert len(full) - 12 <= shared.sum() <= len(cut) <= shared.sum() + 2
        assert full.last[shared].tolist() == cut.last[np.isin(cut.time_ns, full.time_ns)].tolist()


def socket(**fields: object) -> SocketSample:
    return SocketSample.from_values({"state": "ESTAB", "congestion_control": "cubic", "line": 1, **fields})


def test_claims_of_samples() -> None:
    assert find_scale("a", []) == []
    said = [
        socket(state="SYN-SENT", line=1),
        socket(snd_wscale=7, rcv_wscale=9, line=3),
        socket(snd_wscale=7, rcv_wscale=9, line=5),
        # Without TCP information the scale remains unknown.
        SocketSample(state="ESTAB", line=7),
    ]
    assert find_scale("a", said) == [ScaleClaim("b", 7, "a", 2, 0, 3), ScaleClaim("a", 9, "a", 2, 0, 3)]
    said.append(socket(snd_wscale=8, rcv_wscale=9, line=9))
    claims = find_scale("b", said)
    assert claims == [ScaleClaim("a", 7, "b", 2, 1, 3), ScaleClaim("b", 9, "b", 2, 1, 3)]
    assert [claim.is_exact for claim in claims] == [False, False]


def test_tcp_information_without_wscale_says_that_nothing_is_scaled() -> None:
    assert find_scale("b", [socket(line=4)]) == [ScaleClaim("a", 0, "b", 1, 0, 4), ScaleClaim("b", 0, "b", 1, 0, 4)]


@all_cases("shifts", [(15, 7), (7, 15), (99, 99), (255, 300), (-1, 7), (10**30, 10**30)])
def test_a_shift_above_14_is_ignored(shifts: tuple[int, int]) -> None:
    """RFC 7323 §2.3: the maximum is 14."""
    assert find_scale("a", [socket(snd_wscale=shifts[0], rcv_wscale=shifts[1])]) == []


def test_many_different_shifts_take_no_longer() -> None:
    said = [socket(snd_wscale=place % 15, rcv_wscale=place // 15 % 15, line=place) for place in range(50_000)]
    [first, _] = find_scale("a", said)
    assert (first.samples + first.against, first.is_exact) == (50_000, False)


def cut_transfer(tmp_path: Path) -> tuple[Transfer, Path]:
    """Return a transfer's capture without its handshake: records of 74, 74 and 70 bytes."""
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    content = capture.read_bytes()
    capture.write_bytes(content[:24] + content[24 + 74 + 74 + 70 :])
    return transfer, capture


def said_of(transfer: Transfer, wscale: str) -> SnapshotFile:
    return of(
        "".join(
            write_stamp(time_ns)
            + socket_text(transfer.server, transfer.client, f"{wscale} mss:1000 cwnd:10 bytes_acked:5000")
            for time_ns in transfer.sample_times()
        )
    )


@pytest.mark.parametrize("wscale", ["wscale:99,99", "wscale:255,300", "wscale:7,15", f"wscale:{10**30},7"])
def test_an_absurd_shift_is_ignored(tmp_path: Path, wscale: str) -> None:
    transfer, capture = cut_transfer(tmp_path)
    [connection] = analyze(capture, snapshots=[said_of(transfer, wscale)]).connections
    assert scales(connection) == {"a": ("unknown", None), "b": ("unknown", None)}
    assert connection.scale_claims == ()


def test_a_shift_that_contradicts_the_packets_is_ignored(tmp_path: Path) -> None:
    """2000 bytes in flight do not fit an unscaled window of 512: the shift is at least 2."""
    transfer, capture = cut_transfer(tmp_path)
    assert analyze(capture).connections[0].b_to_a.window_scale.shift_min == 2
    [connection] = analyze(capture, snapshots=[said_of(transfer, "wscale:1,7")]).connections
    assert scales(connection) == {"a": ("unknown", None), "b": ("unknown", None)}
    assert [(claim.side, claim.shift) for claim in connection.scale_claims] == [("a", 1), ("b", 7)]
    [connection] = analyze(capture, snapshots=[said_of(transfer, "wscale:2,7")]).connections
    assert scales(connection) == {"a": ("given", 2), "b": ("given", 7)}


def test_hosts_that_contradict_each_other_settle_nothing(tmp_path: Path) -> None:
    transfer, capture = cut_transfer(tmp_path)
    other = of(transfer.client_ss().replace("wscale:7,7", "wscale:7,6"))
    [connection] = analyze(capture, snapshots=[("s", of(transfer.server_ss())), ("c", other)]).connections
    assert scales(connection) == {"a": ("unknown", None), "b": ("unknown", None)}
    assert {(claim.side, claim.shift, claim.by) for claim in connection.scale_claims} == {
        ("a", 7, "b"),
        ("b", 7, "b"),
        ("b", 7, "a"),
        ("a", 6, "a"),
    }


def test_the_syns_are_believed_before_any_socket(tmp_path: Path) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    [connection] = analyze(capture, snapshots=[said_of(transfer, "wscale:3,4")]).connections
    assert scales(connection) == {"a": ("known", 7), "b": ("known", 7)}
    assert [(claim.side, claim.shift) for claim in connection.scale_claims] == [("a", 3), ("b", 4)]


def test_the_table_of_segments_has_the_window_in_bytes_too() -> None:
    analysis = tcpwin.analyze(BUNDLES / "without-syn.zip")
    connection = analysis.connections[0]
    table = connection.segments()
    shown = table["window"][table["direction"] == "a"]
    assert not np.ma.is_masked(shown)
    assert shown.max() == connection.b_to_a.receive_window_max_bytes


def test_a_shift_given_by_hand_overrides_a_sockets(tmp_path: Path) -> None:
    transfer, capture = cut_transfer(tmp_path)
    address = tcpwin.analyze(capture).connections[0].a.address
    analysis = analyze(capture, snapshots=[said_of(transfer, "wscale:2,7")], window_scales={address: 5})
    [connection] = analysis.connections
    assert scales(connection) == {"a": ("given", 5), "b": ("given", 7)}
    [note] = analysis.notes
    assert f"window scale of {address}: 5 was given" in note
    assert "its socket says 2" in note
    analysis = analyze(capture, snapshots=[said_of(transfer, "wscale:2,7")], window_scales={address: 2})
    assert analysis.notes == ()
