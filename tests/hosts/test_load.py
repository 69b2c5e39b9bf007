"""Snapshots of a capture by host: labels, bundles, kinds of samples, and memory limits."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hosts.joined import SECOND_NS, Transfer, copied_run, socket_text, ss_text, write_pcap, write_stamp
from lab.runs import Run

import tcpwin
from tcpwin.hosts import (
    Bundle,
    CounterSample,
    Host,
    KernelSample,
    SettingsSample,
    SnapshotFacts,
    SnapshotFile,
    SocketSample,
)
from tcpwin.hosts import load as load_module
from tcpwin.hosts.joined import Joined, _within
from tcpwin.hosts.load import load
from tcpwin.hosts.match import Match, Matcher
from tcpwin.hosts.sample_store import Kept
from tcpwin.limits import Analysis, analyze
from tcpwin.limits.evidence.hosts import growth
from tcpwin.sources import FileSource

NSTAT = "#kernel\nTcpActiveOpens    5    0.0\nTcpRetransSegs    7    0.0\n"
SOCKSTAT = "sockets: used 100\nTCP: inuse 5 orphan 0 tw 2 alloc 7 mem 3\nUDP: inuse 1 mem 2\n"
SYSCTL = "net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_window_scaling = 1\n"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_pcap(tmp_path / "c.pcap", Transfer())


def matched(analysis: Analysis) -> dict[str, tuple[int, set[str]]]:
    return {host.label: (host.matched, host.sides) for host in analysis.hosts}


def test_without_snapshots_there_is_no_host(capture: Path) -> None:
    analysis = analyze(capture)
    assert analysis.hosts == ()
    assert analysis.connections[0].snapshots == ()
    assert analysis.connections[0].scale_claims == ()
    assert "hosts" not in analysis.to_json()


def test_files_of_one_host_are_one_host(tmp_path: Path, capture: Path) -> None:
    transfer = Transfer()
    texts = {
        "ss_web1.txt": transfer.server_ss(),
        "nstat_web1.txt": NSTAT,
        "sockstat_web1.txt": SOCKSTAT,
        "sysctl_web1.txt": SYSCTL,
        "ss_client.txt": transfer.client_ss(),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    analysis = analyze(capture, snapshots=[tmp_path / name for name in texts])
    assert matched(analysis) == {"client": (20, {"a"}), "web1": (20, {"b"})}
    host = analysis.hosts[1]
    assert [(Path(file.name).name, file.format, file.samples, file.unknown_lines) for file in host.files] == [
        ("ss_web1.txt", "ss", 20, 0),
        ("nstat_web1.txt", "nstat", 1, 0),
        ("sockstat_web1.txt", "sockstat", 1, 0),
        ("sysctl_web1.txt", "sysctl", 1, 0),
    ]
    assert [sample.values for sample in host.counters] == [{"TcpActiveOpens": 5, "TcpRetransSegs": 7}]
    assert [sample.tcp_memory_bytes for sample in host.memory] == [3 * 4096]
    assert host.settings.numbers("net.ipv4.tcp_rmem") == (4096, 131_072, 6_291_456)
    assert (host.kernel, host.others) == (None, [])


def test_later_settings_of_a_host_add_to_earlier_ones(capture: Path) -> None:
    later = "net.ipv4.tcp_rmem = 4096 131072 33554432\nnet.ipv4.tcp_sack = 1\n"
    files = [("h", SnapshotFile(text.encode())) for text in (SYSCTL, later)]
    [host] = analyze(capture, snapshots=files).hosts
    assert host.settings.values == {
        "net.ipv4.tcp_rmem": "4096 131072 33554432",
        "net.ipv4.tcp_window_scaling": "1",
        "net.ipv4.tcp_sack": "1",
    }
    assert (host.clock, host.sockets, host.sides) == (None, 0, set())


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("ss.txt", ""),
        ("ss_snd.txt", "snd"),
        ("ss-web1.example.org.txt", "web1.example.org"),
        ("ss_10.9.1.1.txt.gz", "10.9.1.1"),
        ("ss_2026-11-21.txt", ""),
        ("web1_ss.log", "web1"),
    ],
)
def test_a_files_name_gives_its_host(tmp_path: Path, capture: Path, name: str, label: str) -> None:
    data = Transfer().server_ss().encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    [host] = analyze(capture, snapshots=[path]).hosts
    assert (host.label, host.matched) == (label, 20)
    [named] = analyze(capture, snapshots=[("mine", path)]).hosts
    assert (named.label, named.matched) == ("mine", 20)
    [unnamed] = analyze(capture, snapshots=[("", path)]).hosts
    assert unnamed.label == ""


def test_two_hosts_have_clocks_of_their_own(capture: Path) -> None:
    transfer = Transfer()
    ahead_ns = 90 * SECOND_NS
    files = [
        ("client", SnapshotFile(transfer.client_ss(offset_ns=ahead_ns).encode())),
        ("server", SnapshotFile(transfer.server_ss().encode())),
    ]
    analysis = analyze(capture, snapshots=files)
    client, server = (host.clock for host in analysis.hosts)
    assert (client.method, server.method) == ("estimated", "same_clock")
    assert client.uncertainty_ns is not None
    assert abs(client.offset_ns + ahead_ns) <= client.uncertainty_ns <= 16_000_000
    times = [each.time_ns for each in analysis.connections[0].snapshots]
    assert times == sorted(times, key=lambda time_ns: time_ns or 0)
    assert len(times) == 40


# Bundles.


def bundle_members() -> dict[str, bytes]:
    run = copied_run("slow-reader")
    receiver = copied_run("slow-reader-receiver")
    return {
        "bundle/snd/capture.pcap.gz": run.capture.read_bytes(),
        "bundle/snd/ss.txt": ss_text(run, "snd").encode(),
        "bundle/snd/nstat.csv": (run.truth / "nstat_snd.csv").read_bytes(),
        "bundle/rcv/capture.pcap.gz": receiver.capture.read_bytes(),
        "bundle/rcv/ss.txt": ss_text(run, "rcv").encode(),
        "bundle/notes.txt": b"taken on a Monday\n",
    }


def write_bundle(path: Path, kind: str) -> Path:
    members = bundle_members()
    if kind == "folder":
        for name, data in members.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return path / "bundle"
    target = path / f"b.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(target, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return target
    with tarfile.open(target, "w:gz" if kind == "tar.gz" else "w") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return target


@pytest.mark.parametrize("kind", ["folder", "zip", "tar", "tar.gz"])
def test_a_bundle_beside_a_capture_is_read_by_host(tmp_path: Path, kind: str) -> None:
    run = copied_run("slow-reader")
    path = write_bundle(tmp_path, kind)
    analysis = analyze(run.capture, snapshots=[path])
    receiver = "b" if run.sender == "a" else "a"
    assert matched(analysis) == {
        "rcv": (len(run.samples("rcv")) + syn_sent(run), {receiver}),
        "snd": (len(run.samples("snd")), {run.sender}),
    }
    assert [sorted(file.format for file in host.files) for host in analysis.hosts] == [["ss"], ["counter_csv", "ss"]]
    found = analysis.connections[0].snapshots
    assert [each.disagreements for each in found] == [()] * len(found)
    with Bundle.open(path) as bundle:
        again = analyze(run.capture, snapshots=[bundle])
        assert matched(again) == matched(analysis)


@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_a_bundle_is_a_capture_with_its_snapshots(tmp_path: Path, kind: str) -> None:
    """Values read later are still available although the bundle was unpacked only briefly."""
    run = copied_run("slow-reader")
    path = write_bundle(tmp_path, kind)
    with pytest.raises(tcpwin.SnapshotError, match="2 captures"):
        analyze(path)
    analysis = analyze(path, capture="bundle/snd/capture.pcap.gz" if kind != "folder" else "snd/capture.pcap.gz")
    beside = analyze(run.capture, snapshots=[path])
    assert matched(analysis) == matched(beside)
    assert analysis.connections[0].snapshots == beside.connections[0].snapshots
    assert len(analysis.segments()) == len(beside.segments())


def syn_sent(run: Run) -> int:
    text = ss_text(run, "rcv")
    return sum(line.startswith("SYN-SENT") for line in text.splitlines())


def test_files_that_cannot_be_read_are_errors(tmp_path: Path, capture: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(tcpwin.SnapshotError, match="empty"):
        analyze(capture, snapshots=[empty])
    with pytest.raises(tcpwin.SnapshotError, match="binary"):
        analyze(capture, snapshots=[capture])
    with pytest.raises(FileNotFoundError):
        analyze(capture, snapshots=[tmp_path / "absent.txt"])
    with pytest.raises(tcpwin.SnapshotError, match="not a known snapshot format"):
        analyze(capture, snapshots=[SnapshotFile(b"hello there\n", format=None)])


def test_a_pipe_is_kept_to_be_read_again(capture: Path) -> None:
    pipe = Pipe(capture.read_bytes())
    analysis = analyze(pipe, snapshots=[("h", SnapshotFile(Transfer().server_ss().encode()))])
    assert matched(analysis) == {"h": (20, {"b"})}
    assert all(each.acked_bytes is not None for each in analysis.connections[0].snapshots)
    once = FileSource(Pipe(capture.read_bytes()), name="once", keep=False)
    with pytest.raises(tcpwin.SourceError, match="once can be read only once"):
        analyze(once, snapshots=[("h", SnapshotFile(Transfer().server_ss().encode()))])


class Pipe(io.BytesIO):
    """A file that can be read only once."""

    def seekable(self) -> bool:
        return False


def test_lines_that_no_reader_knows_are_counted_beside_the_samples(capture: Path) -> None:
    text = Transfer().server_ss() + "### 1700000009\nwhat is this?\n"
    [host] = analyze(capture, snapshots=[("h", SnapshotFile(text.encode(), name="x"))]).hosts
    [facts] = host.files
    assert isinstance(facts, SnapshotFacts)
    assert (facts.name, facts.format, facts.samples, facts.unknown_lines) == ("x", "ss", 20, 1)
    assert [(line.number, line.text) for line in facts.first_unknown] == [(62, "what is this?")]


# Memory limits.


class Everything(Matcher):
    """Make each socket a connection, by its peer's port."""

    def __init__(self) -> None:
        pass

    def find(self, sample: SocketSample) -> list[Match]:
        return [Match(sample.peer_port or 0, "a")]


def sockets(ports: list[int]) -> list[SocketSample]:
    return [SocketSample(time_ns=place, peer_port=port) for place, port in enumerate(ports)]


def take(host: Host, ports: list[int]) -> None:
    for sample in sockets(ports):
        host.take(sample, Everything())


def test_stored_samples_are_bounded_and_even_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "KEPT_SAMPLES", 100)
    host = Host("h", _limit=100)
    take(host, [7] * 101 * 8)
    [kept] = host.found.values()
    times = [sample.time_ns or 0 for sample in kept]
    # Sample 101 of every eighth sample exceeded the limit, so every second one was dropped.
    assert times == list(range(0, 808, 16))
    assert (host.thinned, host.sockets, host.matched) == (True, 808, 808)


def test_one_sample_of_each_of_many_sockets_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is limited by the capture's connections. Thinned samples are not thinned again per connection."""
    monkeypatch.setattr(load_module, "KEPT_SAMPLES", 1000)
    host = Host("h", _limit=1000)
    take(host, list(range(20_000)))
    assert len(host.found) == 20_000
    assert all(len(samples) == 1 for samples in host.found.values())


def test_the_bound_is_that_of_the_documentation(capture: Path) -> None:
    assert load_module.KEPT_SAMPLES == 200_000
    host = Host("h")
    matcher = Matcher(analyze(capture))
    sample = SocketSample(local_address="10.0.0.2", local_port=5201, peer_address="10.0.0.1", peer_port=40000)
    for _ in range(200_001):
        host.take(sample, matcher)
    [kept] = host.found.values()
    assert (host.thinned, host.matched, len(kept)) == (True, 200_001, 100_001)


def test_impossible_timestamps_are_ignored(capture: Path) -> None:
    transfer = Transfer()
    text = "".join(
        f"### {stamp}\n" + socket_text(transfer.server, transfer.client, "mss:1000 cwnd:10 bytes_acked:5000")
        for stamp in ("9999999999999999999", "9999999999999.5", "1700000000.143")
    )
    [host] = load([("h", SnapshotFile(text.encode()))], Matcher(analyze(capture)))
    [samples] = host.found.values()
    assert [sample.time_ns for sample in samples] == [1_700_000_000_143_000_000, None, None]


def test_counters_beyond_the_bound_are_thinned_evenly_and_keep_their_last(
    monkeypatch: pytest.MonkeyPatch, capture: Path
) -> None:
    monkeypatch.setattr(load_module, "KEPT_OF_HOST", 3)
    text = "".join(
        f"{write_stamp(START_NS + place * SECOND_NS)}Tcp: RetransSegs\nTcp: {place * place}\n" for place in range(12)
    )
    [host] = analyze(capture, snapshots=[("h", SnapshotFile(text.encode(), format="proc_net"))]).hosts
    # 0 1 2 3 → 0 2 (3); 0 2 4 6 → 0 4 (6); then every fourth; the last is always kept.
    assert [sample.values["TcpRetransSegs"] for sample in host.counters] == [0, 16, 64, 121]
    assert (host.thinned, [facts.samples for facts in host.files]) == (True, [12])


def test_increments_of_dropped_samples_are_added_to_the_next() -> None:
    kept = Kept()
    for place in range(9):
        kept.append(CounterSample(place, 1, {"TcpRetransSegs": 10**place}, True, {}), 3)
    # The first is separate: it counts events before the file.
    assert [(sample.time_ns, sample.values["TcpRetransSegs"]) for sample in kept.samples] == [
        (0, 1),
        (4, 11_110),
        (8, 111_100_000),
    ]
    assert kept.thinned


def test_few_samples_are_not_thinned() -> None:
    kept = Kept()
    for place in range(3):
        kept.append(place, 3)
    assert (kept.samples, kept.thinned, len(kept)) == ([0, 1, 2], False, 3)


# Several files of one host, combined.

START_NS = 1_700_000_000 * SECOND_NS


def counters(*runs: tuple[int | None, int]) -> bytes:
    """Return /proc/net/snmp at some seconds, with its retransmissions."""
    return "".join(
        f"{'' if second is None else write_stamp(START_NS + second * SECOND_NS)}Tcp: RetransSegs\nTcp: {count}\n"
        for second, count in runs
    ).encode()


def host_of(capture: Path, *files: tuple[str, bytes]) -> tuple[Host, Analysis]:
    analysis = analyze(capture, snapshots=[("h", SnapshotFile(data, name=name)) for name, data in files])
    [host] = analysis.hosts
    return host, analysis


def test_rotated_counters_are_put_in_order_of_time(capture: Path) -> None:
    host, analysis = host_of(
        capture,
        ("snap", counters((4, 40), (5, 41))),
        ("snap.1", counters((2, 20), (3, 30))),
        ("snap.2", counters((0, 5), (1, 7))),
    )
    assert [sample.values["TcpRetransSegs"] for sample in host.counters] == [5, 7, 20, 30, 40, 41]
    assert [source.files for source in host.counter_sources] == [["snap.2", "snap.1", "snap"]]
    assert growth(host, "TcpRetransSegs") == {"TcpRetransSegs": 36}
    assert analysis.notes == ()


def test_after_sorts_before_before_and_is_put_behind_it(capture: Path) -> None:
    host, analysis = host_of(
        capture, ("nstat_rcv_after.txt", counters((None, 64))), ("nstat_rcv_before.txt", counters((None, 5)))
    )
    assert [sample.values["TcpRetransSegs"] for sample in host.counters] == [5, 64]
    assert growth(host, "TcpRetransSegs") == {"TcpRetransSegs": 59}
    assert analysis.notes == ()


def test_two_sources_of_the_same_counters_are_not_added(capture: Path) -> None:
    table = b"t,RetransSegs\n1700000000,0\n1700000002,40\n1700000004,59\n"
    host, _ = host_of(
        capture,
        ("nstat.csv", table),
        ("nstat_after.txt", counters((None, 64))),
        ("nstat_before.txt", counters((None, 5))),
    )
    assert [sample.values["TcpRetransSegs"] for sample in host.counters] == [0, 40, 59]
    assert [(source.format, source.files, source.span_ns) for source in host.counter_sources] == [
        ("counter_csv", ["nstat.csv"], 4 * SECOND_NS),
        ("proc_net", ["nstat_before.txt", "nstat_after.txt"], None),
    ]
    assert growth(host, "TcpRetransSegs") == {"TcpRetransSegs": 59}


def test_a_counter_that_the_longest_source_lacks_is_taken_from_another(capture: Path) -> None:
    table = b"t,RetransSegs\n1700000000,0\n1700000004,59\n"
    more = "Tcp: RetransSegs InErrs\nTcp: {} {}\n"
    host, _ = host_of(
        capture,
        ("nstat.csv", table),
        ("before.txt", more.format(5, 1).encode()),
        ("after.txt", more.format(64, 8).encode()),
    )
    assert growth(host, "TcpRetransSegs", "TcpInErrs") == {"TcpRetransSegs": 59, "TcpInErrs": 7}


def test_files_of_one_time_are_two_sources_and_the_longer_one_counts(capture: Path) -> None:
    host, _ = host_of(
        capture, ("a", counters((1, 10), (3, 20))), ("b", counters((0, 9), (2, 15), (4, 25))), ("c", counters((5, 29)))
    )
    assert [source.files for source in host.counter_sources] == [["b", "c"], ["a"]]
    assert growth(host, "TcpRetransSegs") == {"TcpRetransSegs": 20}


def test_counts_that_fall_in_an_unknown_order_have_no_increase(capture: Path) -> None:
    host, analysis = host_of(capture, ("one.txt", counters((None, 64))), ("two.txt", counters((None, 5))))
    assert [sample.values["TcpRetransSegs"] for sample in host.counters] == [5]
    assert growth(host, "TcpRetransSegs") == {}
    assert analysis.notes == (
        "counters fall from one.txt to two.txt, and neither their times nor their names say which was first: only "
        "those of two.txt are compared",
    )


def test_samples_of_all_kinds_are_in_order_of_time(capture: Path) -> None:
    transfer = Transfer()

    def socket(second: int | None, acked: int) -> str:
        stamp = "" if second is None else write_stamp(START_NS + second * SECOND_NS)
        return stamp + socket_text(transfer.server, transfer.client, f"mss:1000 cwnd:10 bytes_acked:{acked}")

    def memory(second: int) -> bytes:
        return f"{write_stamp(START_NS + second * SECOND_NS)}{SOCKSTAT.replace('inuse 5', f'inuse {second}')}".encode()

    host, _ = host_of(
        capture,
        ("ss_untimed", socket(None, 4).encode()),
        ("ss_new", (socket(5, 3) + socket(4, 2)).encode()),
        ("ss_old", socket(1, 1).encode()),
        ("sockstat_new", memory(7)),
        ("sockstat_old", memory(2)),
    )
    [samples] = host.found.values()
    assert [sample.bytes_acked for sample in samples] == [1, 2, 3, 4]
    assert [sample.tcp_inuse for sample in host.memory] == [2, 7]


def test_the_latest_settings_and_kernel_hold_whatever_was_read_last() -> None:
    host = Host("h")
    host.begin("x", "snap")
    for time_ns, values in ((3, {"a": "3"}), (1, {"a": "1", "b": "1"}), (2, {"b": "2"}), (None, {"a": "9", "c": "9"})):
        host.take(SettingsSample(time_ns, 1, values), Everything())
    assert host.settings == SettingsSample(3, 1, {"a": "3", "b": "2", "c": "9"})
    for time_ns, release in ((None, "4.0"), (3, "6.3"), (2, "6.2"), (None, "9.9")):
        host.take(KernelSample(time_ns, 1, release), Everything())
    assert host.kernel == KernelSample(3, 1, "6.3")


def test_unread_members_of_a_bundle_are_named(tmp_path: Path, capture: Path) -> None:
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ss_h.txt", Transfer().server_ss())
        archive.writestr("letter.txt", "Dear all,\n")
        archive.writestr("../out.txt", NSTAT)
    analysis = analyze(capture, snapshots=[path])
    assert analysis.notes == (
        f"{path}: 2 files of the bundle were not read: letter.txt (not a known snapshot format), ../out.txt "
        "(its name leads outside the bundle)",
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ss_h.txt", Transfer().server_ss())
        for place in range(1000):
            archive.writestr(f"{place:03}.txt", "")
    [note] = analyze(capture, snapshots=[path]).notes
    named = ", ".join(f"{place:03}.txt (empty)" for place in range(10))
    assert note == f"{path}: 1,000 files of the bundle were not read: {named}, …"


def test_standard_files_of_a_lab_run_are_not_named(tmp_path: Path) -> None:
    run = Path(__file__).parents[2] / "captures" / "reference" / "zero-window-records-stock.zip"
    assert analyze(run, capture="sender.pcap.gz").notes == ()
    path = tmp_path / "more.zip"
    path.write_bytes(run.read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("zero-window-records-stock/letter.txt", "Dear all,\n")
    [note] = analyze(path, capture="sender.pcap.gz").notes
    assert note.startswith(f"{path}: 1 file of the bundle was not read: zero-window-records-stock/letter.txt ")


def test_each_connection_has_the_samples_of_its_time(tmp_path: Path) -> None:
    """A connection finds its samples without scanning all sockets; times separate reused four-tuples."""
    samples = {second: SocketSample(time_ns=second * SECOND_NS) for second in (1, 5, 9)}
    untimed = SocketSample()
    analysis = analyze(write_pcap(tmp_path / "c.pcap", Transfer()))
    host = Host("h")
    host.found = {Match(0, "a"): [samples[1], samples[5], samples[9], untimed], Match(1, "b"): [samples[5], untimed]}
    analysis._joined = Joined(analysis)
    analysis._joined.hosts = (host,)
    assert analysis.sockets_of(0) == [(host, "a", [samples[1], samples[5], samples[9], untimed])]
    assert analysis.sockets_of(1) == [(host, "b", [samples[5], untimed])]
    assert analysis.sockets_of(2) == []
    assert _within(host.found[Match(0, "a")], 5 * SECOND_NS, 9 * SECOND_NS, 0) == [samples[5]]
    assert _within(host.found[Match(0, "a")], None, 9 * SECOND_NS, SECOND_NS) == [samples[1], samples[5]]
    assert _within(host.found[Match(0, "a")], 6 * SECOND_NS, None, SECOND_NS) == [samples[5], samples[9]]


def test_finding_samples_walks_over_all_sockets_once_only(tmp_path: Path) -> None:
    class Watched(dict[Match, list[SocketSample]]):
        walks = 0

        def items(self) -> Any:
            Watched.walks += 1
            return super().items()

    analysis = analyze(write_pcap(tmp_path / "c.pcap", Transfer()))
    host = Host("h", found=Watched({Match(id, "a"): [SocketSample(line=id)] for id in range(1000)}))
    analysis._joined = Joined(analysis)
    analysis._joined.hosts = (host,)
    assert [analysis.sockets_of(id) for id in range(1000)] == [
        [(host, "a", [SocketSample(line=n)])] for n in range(1000)
    ]
    assert Watched.walks == 1


def test_connections_whose_scale_is_known_are_not_asked_for_it(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    def refuse(analysis: Analysis, id: int) -> None:
        raise AssertionError(f"{analysis}: {id}")

    monkeypatch.setattr(Analysis, "scale_claims", refuse)
    [host] = analyze(capture, snapshots=[("h", SnapshotFile(Transfer().server_ss().encode()))]).hosts
    assert host.matched == 20


def long_gzip(text: str) -> bytes:
    """Compressed `ss` text that inflates to far more than 200 times its size and 64 MiB."""
    part = f"{text}{' ' * 1_000_000}\n".encode()
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as file:
        for _ in range(70):
            file.write(part)
    return out.getvalue()


def test_an_error_in_a_file_ends_that_file_only(tmp_path: Path, capture: Path) -> None:
    transfer = Transfer()
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "ss_client.txt.gz").write_bytes(long_gzip(transfer.client_ss()))
    (folder / "ss_server.txt").write_text(transfer.server_ss())
    analysis = analyze(capture, snapshots=[folder])
    by_label = {host.label: host for host in analysis.hosts}
    assert by_label["server"].matched == len(transfer.sample_times())
    [facts] = by_label["client"].files
    assert facts.samples > 0
    assert analysis.notes == (
        f"ss_client.txt.gz was read only up to sample {facts.samples:,}: compressed, and unpacks to more than "
        "33,554,432 bytes",
    )


def test_a_damaged_member_of_a_bundle_leaves_the_others(tmp_path: Path, capture: Path) -> None:
    transfer = Transfer()
    path = tmp_path / "case.zip"
    # The damage follows the first bytes, by which the format is recognised.
    long = NSTAT + "".join(f"TcpExtX{number} {number} 0.0\n" for number in range(20_000))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("nstat_server.txt", long)
        archive.writestr("ss_server.txt", transfer.server_ss())
    data = bytearray(path.read_bytes())
    place = data.index(b"TcpExtX15000 ")
    data[place] ^= 1
    path.write_bytes(data)
    analysis = analyze(capture, snapshots=[path])
    [host] = analysis.hosts
    assert (host.matched, [each.name for each in host.files]) == (len(transfer.sample_times()), ["ss_server.txt"])
    [note] = analysis.notes
    assert note.startswith(f"{path}: nstat_server.txt was not read: damaged: Bad CRC-32")


def test_a_host_shows_itself_in_a_line() -> None:
    """A notebook displays the last value of a cell, and a hundred thousand numbers would be unreadable."""
    bundle = Path(__file__).parents[2] / "captures" / "bundles" / "slow-reader.zip"
    host = tcpwin.analyze(bundle).connections[0].hosts["a"]
    assert repr(host) == "<Host receiver: 5 files, 151 of 151 samples of sockets are of the capture, Linux 6.1.192>"
