"""Socket samples joined to packets: every lab run at either end, and a transfer with known values."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest
from cases import all_cases
from hosts.joined import MS_NS, SECOND_NS, Transfer, socket_text, ss_text, write_pcap, write_stamp
from lab.runs import Run
from lab.selection import COPIES, SLOW_READER, STALL, on

import tcpwin
from tcpwin import hosts
from tcpwin.hosts import ClockOffset, Limits, Seen, SnapshotFile
from tcpwin.limits import Analysis, analyze

OWN_SHARE = 0.95
# `ss` read the others up to 89 µs after their timestamp.
READ_LATE = 3


def of(text: str) -> SnapshotFile:
    return SnapshotFile(text.encode())


@cache
def joined(run: Run) -> Analysis:
    return analyze(run.capture, snapshots=[(end, of(ss_text(run, end))) for end in ("snd", "rcv")])


@on(of=12)
def test_every_sample_of_a_run_joins_its_side(run: Run) -> None:
    analysis = joined(run)
    [connection] = [each for each in analysis.connections if each.id == run.connection.id]
    receiver = "b" if run.sender == "a" else "a"
    for end, side in (("snd", run.sender), ("rcv", receiver)):
        found = [each for each in connection.snapshots if each.side == side]
        states = {each.sample.state for each in found}
        # run.samples omits SYN-SENT.
        known = [each for each in found if each.sample.state != "SYN-SENT"]
        assert [
            (
                each.time_ns,
                each.sample.state,
                each.sample.local_port,
                each.sample.peer_port,
                each.sample.bytes_acked or 0,
                each.sample.snd_wnd_bytes or 0,
            )
            for each in known
        ] == [
            (
                sample.time_ns,
                sample.state,
                sample.local_port,
                sample.peer_port,
                sample.number("bytes_acked"),
                sample.number("snd_wnd"),
            )
            for sample in run.samples(end)
        ]
        assert known
        assert states <= {"SYN-SENT", "ESTAB", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK"}
    labels = {host.label: host for host in analysis.hosts}
    assert labels["snd"].sides == {run.sender}
    assert labels["rcv"].sides == {receiver}
    assert all(host.matched == host.sockets for host in analysis.hosts)
    assert all(host.translated == [] and not host.thinned for host in analysis.hosts)
    assert all(file.unknown_lines == 0 for host in analysis.hosts for file in host.files)


@on(of=12, first=1)
def test_clocks_of_a_run_are_one_and_nothing_disagrees(run: Run) -> None:
    """The lab's hosts and captures share the clock of the machine that runs them."""
    analysis = joined(run)
    for host in analysis.hosts:
        clock = host.clock
        assert clock.method == "same_clock"
        assert clock.offset_ns == 0
        assert clock.least_ns is not None
        assert clock.most_ns is not None
        assert clock.least_ns <= 0 <= clock.most_ns
        assert clock.agreeing >= 0.98 * clock.samples > 0
    disagreements = [each.disagreements for each in analysis.connections[run.connection.id].snapshots]
    assert disagreements == [()] * len(disagreements)


@on(of=12, first=2)
def test_packets_have_what_the_kernel_at_the_capture_point_said(run: Run) -> None:
    analysis = joined(run)
    side = run.sender if run.end == "snd" else ("b" if run.sender == "a" else "a")
    mine = [each for each in analysis.connections[run.connection.id].snapshots if each.side == side]
    windows = [
        each.peer_window_bytes.value == each.sample.snd_wnd_bytes
        for each in mine
        if each.peer_window_bytes is not None and each.sample.snd_wnd_bytes is not None
    ]
    acked = [
        each.acked_bytes.value == each.sample.count("bytes_acked") for each in mine if each.acked_bytes is not None
    ]
    for equal in (windows, acked) if run.end == "snd" else (windows,):
        assert equal
        assert equal.count(False) <= max(READ_LATE, (1 - OWN_SHARE) * len(equal))


@on(ends=["snd"], of=6)
def test_sums_of_the_limits_are_the_kernels_last_counters(run: Run) -> None:
    found = [each for each in joined(run).connections[run.connection.id].snapshots if each.side == run.sender]
    first = next(place for place, each in enumerate(found) if each.limits is not None) - 1
    limits = [each.limits for each in found[first + 1 :] if each.limits is not None]
    assert len(limits) == len(found) - first - 1
    for name in ("busy_ns", "rwnd_limited_ns", "sndbuf_limited_ns"):
        grown = (found[-1].sample.count(name) or 0) - (found[first].sample.count(name) or 0)
        assert sum(getattr(each, name) for each in limits) == grown
    last, begin = found[-1].sample.time_ns, found[first].sample.time_ns
    assert last is not None
    assert begin is not None
    assert sum(each.elapsed_ns for each in limits) == last - begin


@on([*SLOW_READER, *STALL, "rmem_64k_196ms", "loss1_cubic_sack1"], ends=["snd"])
def test_packets_and_kernel_agree_how_long_the_window_limited(run: Run) -> None:
    """`rwnd_limited` counts in steps of 10 ms (HZ=100), and while the data in flight is less than a round trip old."""
    found = [each for each in joined(run).connections[run.connection.id].snapshots if each.side == run.sender]
    spans = [each.limits for each in found if each.limits is not None and each.limits.window_limited_ns is not None]
    assert len(spans) >= 10
    kernel_ns = sum(each.rwnd_limited_ns for each in spans)
    packets_ns = sum(each.window_limited_ns or 0 for each in spans)
    whole_ns = sum(each.elapsed_ns for each in spans)
    assert abs(packets_ns - kernel_ns) <= 0.1 * whole_ns


@pytest.mark.parametrize("at_client", [False, True])
def test_values_of_a_transfer_at_either_end(tmp_path: Path, at_client: bool) -> None:
    transfer = Transfer(at_client=at_client)
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    texts = [("client", of(transfer.client_ss())), ("server", of(transfer.server_ss()))]
    analysis = analyze(capture, snapshots=texts)
    hosts = {host.label: host.clock for host in analysis.hosts}
    # A sample follows counted data by 3 ms and precedes the next by 7 ms. Across the path the counted data passed the
    # capture point one path delay earlier, the next passes one later. A socket is read up to 0.2 ms after its
    # timestamp.
    near = ClockOffset(0, -3_200_000, 7_000_000, "same_clock", 20, 20)
    far = ClockOffset(0, -13_200_000, 17_000_000, "same_clock", 20, 20)
    assert hosts == ({"client": near, "server": far} if at_client else {"client": far, "server": near})
    server = [each for each in analysis.connections[0].snapshots if each.side == "b"]
    client = [each for each in analysis.connections[0].snapshots if each.side == "a"]
    assert len(server) == len(client) == 20
    window = Seen(65_536, 65_536, 65_536)
    for time_ns, each in zip(transfer.sample_times(), server, strict=True):
        assert each.time_ns == time_ns
        assert each.cwnd_bytes == 10_000
        assert each.peer_window_bytes == window
        assert each.own_window_bytes == window
        assert each.flight_bytes.holds(transfer.sent_bytes(time_ns) - transfer.acked_bytes(time_ns))
        assert each.acked_bytes.value == transfer.acked_bytes(time_ns)
        assert each.disagreements == ()
    for time_ns, each in zip(transfer.sample_times(), client, strict=True):
        assert each.time_ns == time_ns
        assert each.peer_window_bytes == window
        assert each.own_window_bytes == window
        assert each.acked_bytes == Seen(1, 1, 1)
        assert each.received_bytes.value == transfer.received_bytes(time_ns)
        assert each.disagreements == ()


def test_ranges_of_a_sample_at_the_capture_point(tmp_path: Path) -> None:
    """The offset may be 7 ms off: the kernel's value may be the capture's from 7 ms before to 8 ms after."""
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    [first, second, *_] = analyze(capture, snapshots=[of(transfer.server_ss())]).connections[0].snapshots
    # 43 ms after the first segment: ACKs arrived at 20, 30 and 40 ms; the one before -7 ms is the second.
    assert first.acked_bytes == Seen(3000, 2000, 4000)
    assert first.flight_bytes == Seen(2000, 1000, 2000)
    assert first.received_bytes == Seen(0, 0, 0)
    assert first.limits is None
    assert second.acked_bytes == Seen(8000, 7000, 9000)


def test_a_kernel_that_says_otherwise_disagrees(tmp_path: Path) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    lines = transfer.server_ss().split("\n")
    lines[5] = lines[5].replace("snd_wnd:65536", "snd_wnd:60000").replace("bytes_acked:8000", "bytes_acked:6000")
    found = analyze(capture, snapshots=[of("\n".join(lines))]).connections[0].snapshots
    assert [each.disagreements for each in found if each.sample.snd_wnd_bytes == 65_536] == [()] * 19
    [wrong] = [each for each in found if each.sample.snd_wnd_bytes == 60_000]
    assert [(each.name, each.kernel, each.packets) for each in wrong.disagreements] == [
        ("snd_wnd_bytes", 60_000, Seen(65_536, 65_536, 65_536)),
        ("bytes_acked", 6000, wrong.acked_bytes),
    ]


def test_limits_are_the_growth_of_the_kernels_counters(tmp_path: Path) -> None:
    """Times in `ss` are whole milliseconds; a counter that ran backwards belongs to another socket."""
    transfer = Transfer()
    times = transfer.sample_times()[:4]
    said = (
        " busy:100ms rwnd_limited:10ms(10.0%)",
        " busy:150ms rwnd_limited:40ms(26.7%) sndbuf_limited:5ms(3.3%)",
        " busy:120ms",
        " busy:130ms",
    )
    text = "".join(transfer.server_ss([time_ns], extra=extra) for time_ns, extra in zip(times, said, strict=True))
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    found = analyze(capture, snapshots=[of(text)]).connections[0].snapshots
    assert [each.limits for each in found] == [
        None,
        Limits(50 * MS_NS, 50 * MS_NS, 30 * MS_NS, 5 * MS_NS, 0),
        None,
        Limits(50 * MS_NS, 10 * MS_NS, 0, 0, 0),
    ]


def test_a_kernel_without_the_counters_says_nothing_about_them(tmp_path: Path) -> None:
    """Before Linux 4.1 there is no bytes_acked: its absence does not mean zero."""
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    tokens = "wscale:7,7 rto:220 rtt:20/1 mss:1000 cwnd:10"
    text = "".join(
        write_stamp(time_ns) + socket_text(transfer.server, transfer.client, tokens)
        for time_ns in transfer.sample_times()
    )
    for offset_ns in (None, 0):
        analysis = analyze(capture, snapshots=[of(text)], clock_offset_ns=offset_ns)
        found = analysis.connections[0].snapshots
        assert [(each.disagreements, each.limits) for each in found] == [((), None)] * 20
    assert found[0].acked_bytes == Seen(3000, 3000, 3000)
    assert analyze(capture, snapshots=[of(text)]).hosts[0].clock == ClockOffset(0, None, None, "assumed", 0, 0)


def test_an_offset_that_is_given_is_taken(tmp_path: Path) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    ahead_ns = 5 * SECOND_NS
    text = transfer.server_ss(offset_ns=ahead_ns)
    analysis = analyze(capture, snapshots=[of(text)], clock_offset_ns=-ahead_ns)
    assert analysis.hosts[0].clock == ClockOffset(-ahead_ns, -ahead_ns, -ahead_ns, "given", 0, 0)
    found = analysis.connections[0].snapshots
    assert [each.time_ns for each in found] == transfer.sample_times()
    assert [each.disagreements for each in found] == [()] * 20
    # Every sample contradicts an offset that is wrong by a second.
    wrong = analyze(capture, snapshots=[of(text)], clock_offset_ns=-ahead_ns - 300 * MS_NS).connections[0].snapshots
    assert all([d.name for d in each.disagreements] == ["bytes_acked"] for each in wrong if each.acked_bytes)


def test_samples_outside_of_the_capture_have_no_packets_beside_them(tmp_path: Path) -> None:
    transfer = Transfer()
    capture = write_pcap(tmp_path / "c.pcap", transfer)
    outside = [transfer.start_ns - SECOND_NS, transfer.end_ns + 30 * SECOND_NS]
    text = transfer.server_ss([outside[0], *transfer.sample_times(), outside[1]], extra=" busy:7ms")
    found = analyze(capture, snapshots=[of(text)]).connections[0].snapshots
    assert len(found) == 22
    for each in (found[0], found[-1]):
        assert each.time_ns in outside
        assert (each.flight_bytes, each.peer_window_bytes, each.own_window_bytes) == (None, None, None)
        assert (each.acked_bytes, each.received_bytes, each.disagreements) == (None, None, ())
    spans = [each.limits for each in found[1:] if each.limits is not None]
    assert [each.window_limited_ns for each in spans] == [None, *[0] * 19, None]
    assert [each.busy_ns for each in spans] == [0] * 21


@all_cases("name", [name for _, _, name in COPIES])
def test_samples_without_times_are_kept_and_not_compared(name: str) -> None:
    from hosts.joined import copied_run

    run = copied_run(name)
    text = "".join(
        line for line in ss_text(run, "snd").splitlines(keepends=True) if not line.startswith(("###", "State"))
    )
    analysis = analyze(run.capture, snapshots=[of(text)])
    [host] = analysis.hosts
    assert host.clock == ClockOffset(0, None, None, "assumed", 0, 0)
    found = analysis.connections[0].snapshots
    assert len(found) == len(run.samples("snd")) == host.matched
    for each in found:
        assert each.time_ns is None
        assert (each.flight_bytes, each.peer_window_bytes, each.acked_bytes, each.limits) == (None, None, None, None)
        assert each.disagreements == ()


PAGE = Path(tcpwin.__file__).parent / "docs" / "hosts" / "joining.md"
KINDS = ("ClockOffset", "Disagreement", "Host", "JoinedSample", "Limits", "Seen", "SocketSample")
METHODS = {"same_clock", "estimated", "given", "assumed"}


def test_the_page_names_what_exists() -> None:
    page = PAGE.read_text(encoding="utf8")
    kinds = [getattr(hosts, name) for name in KINDS]
    members = {field.name for kind in kinds for field in dataclasses.fields(kind)} | {
        name for kind in kinds for name, value in vars(kind).items() if isinstance(value, property)
    }
    codes = set(re.findall(r"`([^`\n]+)`", re.sub(r"^    .*$", "", page, flags=re.MULTILINE)))
    for code in codes:
        if re.fullmatch(r"[A-Z]\w+\.\w+", code):
            kind, name = code.split(".")
            home = hosts if hasattr(hosts, kind) else tcpwin
            assert name in {*dir(getattr(home, kind)), *getattr(getattr(home, kind), "__annotations__", {})}
        elif re.fullmatch(r"[A-Z]\w+", code):
            assert hasattr(hosts, code) or hasattr(tcpwin, code)
        elif re.fullmatch(r"[a-z]+(?:_[a-z]+)+", code):
            assert code in members | METHODS or hasattr(hosts, code), code
    assert set(METHODS) <= codes
    # The page describes every column of a joined sample.
    columns = {field.name for field in dataclasses.fields(hosts.JoinedSample) if field.name.endswith("_bytes")}
    assert columns <= codes
    assert {field.name for field in dataclasses.fields(ClockOffset)} <= codes
