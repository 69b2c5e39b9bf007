"""`tcpwin watch` saves complete bundles of new findings in the newest packets, and nothing else."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from analysis.bundled import CAPTURES
from cli.command import TCPWIN, refused, tcpwin
from live import HANG_S
from reference import KERNEL_LACKS, NO_RIGHT
from spread import some_by_day
from watch import stalls

import tcpwin as library
from tcpwin.watch import Bundles, GrowingFile, Metrics, Notice, Round, Settings, Watch, serve
from tcpwin.watch.alerts import OngoingAlerts, costly
from tcpwin.watch.chunk import HEADER_BYTES, Chunk
from tcpwin.watch.recent import Recent
from tcpwin.watch.run import pause_ns

STALLED = CAPTURES / "lab" / "zero-window-stall.pcap.gz"
LOSSY = CAPTURES / "lab" / "loss-1-percent.pcap.gz"


@pytest.fixture(scope="module")
def stalled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stalled") / "stalled.pcap"
    path.write_bytes(gzip.decompress(STALLED.read_bytes()))
    return path


def documents(text: str | bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def of_kind(notice: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in notice if each["type"] == kind]


STRIKES = {
    "reader": ({"TW201", "TW203"}, {"receiver_application"}),
    "down": ({"TW201", "TW203"}, {"receiver_application"}),
    # On a busy machine the forwarder runs late and becomes the bottleneck: then path_rate is right.
    "loss": ({"TW307"}, {"path_loss", "path_rate"}),
    # The application's pauses take most of the time, so they are the limit; the restarts are a finding.
    "idle": ({"TW401"}, {"sender_application"}),
}


def recorded(kind: str, folder: Path) -> list[dict[str, Any]]:
    """Return what a recorder reports about a stall of this kind."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip(f"{KERNEL_LACKS} namespaces to try")
    if kind in stalls.DELAY_S and not Path("/dev/net/tun").exists():
        pytest.skip(f"{KERNEL_LACKS} TUN devices to try")
    command = ["unshare", "-rn", sys.executable, stalls.__file__, str(folder), str(TCPWIN), kind]
    environment = {**os.environ, "PYTHONPATH": str(Path(stalls.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S, env=environment)
    if done.returncode and any(words in done.stderr for words in ("Operation not permitted", "Permission denied")):
        pytest.skip(f"{NO_RIGHT} make namespaces")
    errors = (folder / "errors.txt").read_text()
    assert done.returncode == 0, done.stderr + errors
    assert ("Network is down" in errors) == (kind == "down")
    notice = documents((folder / "lines.jsonl").read_text())
    assert all(each["dropped"] == 0 for each in of_kind(notice, "round"))
    return notice


@pytest.mark.parametrize("kind", some_by_day(STRIKES, of=2))
def test_stalls_of_this_kernel_are_caught(kind: str, tmp_path: Path) -> None:
    notice = recorded(kind, tmp_path)
    rules, limits = STRIKES[kind]
    assert rules & {each["rule"] for each in of_kind(notice, "strike")}
    bundle = max((tmp_path / "bundles").glob("2*"))
    [connection] = [each for each in library.analyze(bundle).connections if each.verdict.is_problem]
    assert connection.verdict.limit in limits
    assert rules & {each.code for each in connection.findings}
    # It includes the host's sockets at that moment, which show the same connection.
    assert connection.snapshots
    assert not list((tmp_path / "bundles").glob(".*"))


def test_quick_connections_do_not_alert(tmp_path: Path) -> None:
    notice = recorded("fine", tmp_path)
    assert (of_kind(notice, "strike"), list((tmp_path / "bundles").glob("2*"))) == ([], [])
    assert (tmp_path / "errors.txt").read_text() == ""


def test_a_pipe_is_judged_by_the_packets_own_clock(stalled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = tcpwin("watch", "--follow", "-", "-o", out, "--json", "--every", "1s", env=None, input=stalled.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    notice = documents(done.stdout)
    whole = library.analyze(stalled)
    assert of_kind(notice, "round")[-1]["packets"] == whole.capture.packets
    # Between its bursts it is silent for four seconds.
    assert len(of_kind(notice, "round")) >= 3
    strikes = of_kind(notice, "strike")
    assert len({(each["client"], each["server"], each["rule"]) for each in strikes}) == len(strikes)
    assert {each["limit"] for each in strikes} <= {"receiver_application"}
    [first, *_] = of_kind(notice, "bundle")
    assert library.analyze(first["path"]).connections[0].verdict.limit == "receiver_application"
    lines = documents((out / "strikes.jsonl").read_text())
    assert [each["rule"] for each in lines] == [each["rule"] for each in strikes]
    assert {each["bundle"] for each in lines} == {Path(each["path"]).name for each in of_kind(notice, "bundle")}


def test_rules_and_costs_choose_what_strikes(stalled: Path) -> None:
    for more in (("--cost", "1h"), ("--ignore", "TW"), ("--select", "TW301")):
        done = tcpwin("watch", "--follow", stalled, "--json", "--for", "5s", *more)
        assert of_kind(documents(done.stdout), "strike") == []
    text = tcpwin("watch", "--follow", stalled, "--for", "5s").stdout.decode()
    assert "TW201 zero-window-stall  10.9.2.2:" in text


def test_a_file_is_followed_as_it_grows_and_is_exchanged(stalled: Path, tmp_path: Path) -> None:
    data, path = stalled.read_bytes(), tmp_path / "growing.pcap"
    path.write_bytes(data[:10])
    source = GrowingFile(str(path))
    assert source.take(0) == []
    chunks = []
    with path.open("ab") as file:
        for begin in range(10, 100_000, 7001):
            file.write(data[begin : min(begin + 7001, 100_000)])
            file.flush()
            chunks += source.take(0)
    records = b"".join(chunk.records for chunk in chunks)
    assert data.startswith(source.header + records)
    assert len(records) > 100_000 - HEADER_BYTES - 300
    # Another file gets its name, as in rotation; later it is truncated.
    other = tmp_path / "other"
    other.write_bytes(data[:5000])
    other.replace(path)
    assert taken(source) == data[HEADER_BYTES : HEADER_BYTES + len(taken_of(data[:5000]))]
    path.write_bytes(data[:3000])
    assert taken(source) == taken_of(data[:3000])
    source.close()


def taken(source: GrowingFile) -> bytes:
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        if chunks := source.take(0.2):
            return b"".join(chunk.records for chunk in chunks)
    raise TimeoutError


def taken_of(data: bytes) -> bytes:
    """Return the complete records at the beginning of a file, by their lengths."""
    place = HEADER_BYTES
    while place + 16 <= len(data):
        (captured,) = struct.unpack_from("<I", data, place + 8)
        if place + 16 + captured > len(data):
            break
        place += 16 + captured
    return data[HEADER_BYTES:place]


def test_an_invalid_record_ends_it_with_a_sentence(stalled: Path) -> None:
    data = stalled.read_bytes()
    cut = HEADER_BYTES + len(taken_of(data[:50_000]))
    done = tcpwin("watch", "--follow", "-", "--json", env=None, input=data[:cut] + b"\xff" * 100)
    assert done.returncode == 0
    assert b"is not a packet" in done.stderr
    packets = len(library.analyze(data[:cut]).connections[0].segments()["frame"])
    assert of_kind(documents(done.stdout), "round")[-1]["packets"] == packets


def test_a_recorder_that_is_killed_leaves_whole_bundles(stalled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "2020-01-01T00-00-00Z-half.part").mkdir(parents=True)
    command = [str(TCPWIN), "watch", "--follow", "-", "-o", str(out), "--json", "--every", "1s", "--after", "1s"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        assert recorder.stdout is not None
        recorder.stdin.write(stalled.read_bytes())
        recorder.stdin.flush()
        for line in recorder.stdout:
            if json.loads(line)["type"] == "bundle":
                break
        recorder.kill()
    found = sorted(path.name for path in out.iterdir())
    assert found[-1] == "strikes.jsonl"
    assert not any(name.endswith(".part") for name in found)
    for name in found[:-1]:
        assert library.analyze(out / name).verdict.limit == "receiver_application"
    assert tcpwin("watch", "--follow", stalled, "-o", out, "--for", "5s").returncode == 0
    assert set(found) < {path.name for path in out.iterdir()}


def test_a_full_disk_is_reported_and_it_continues(stalled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()

    def bound() -> None:
        # As a full disk for anything that writes more than this into one file.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    done = tcpwin(
        "watch", "--follow", "-", "-o", out, "--json", "--every", "1s", "--after", "1s",
        input=stalled.read_bytes(), preexec_fn=bound,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"File too large" in done.stderr
    assert list(out.iterdir()) == []
    notice = documents(done.stdout)
    assert of_kind(notice, "strike")
    assert of_kind(notice, "round")[-1]["packets"] == library.analyze(stalled).capture.packets


def test_a_signal_ends_it_with_a_last_round() -> None:
    command = [str(TCPWIN), "watch", "--follow", "-", "--json", "--every", "1s", "--cost", "1h"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as recorder:
        recorder.stdin.write(gzip.decompress(LOSSY.read_bytes()))
        recorder.stdin.flush()
        [first] = documents(recorder.stdout.readline())
        recorder.send_signal(signal.SIGTERM)
        notice = documents(recorder.stdout.read())
    assert recorder.returncode == 0
    # Packets since the last round are judged too.
    assert of_kind(notice, "round")[-1]["packets"] > first["packets"]


@pytest.mark.parametrize("keep", [1, 3])
def test_the_newest_bundles_are_kept(keep: int, stalled: Path, tmp_path: Path) -> None:
    analysis, bundles = library.analyze(stalled), Bundles(tmp_path, keep)
    strikes = OngoingAlerts(1).strikes(analysis, costly(analysis.findings, 1), 1)
    assert strikes
    for second in (0, 0, 1, 2, 3):
        bundles.write(strikes, stalled.read_bytes(), [], 1_700_000_000_000_000_000 + second * 10**9)
    written = [each["bundle"] for each in documents((tmp_path / "strikes.jsonl").read_text())]
    assert len(set(written)) == 5
    assert sorted(path.name for path in tmp_path.glob("2*")) == sorted(set(written))[-keep:]


def test_a_lasting_problem_alerts_once_and_again_after_it_ended(stalled: Path) -> None:
    analysis, known = library.analyze(stalled), OngoingAlerts(forget_ns=100)
    found = costly(analysis.findings, 1)
    assert [len(known.strikes(analysis, found, now_ns)) for now_ns in (1, 90, 180)] == [len(found), 0, 0]
    assert known.strikes(analysis, [], 300) == []
    assert len(known.strikes(analysis, found, 301)) == len(found)


def test_recent_packets_are_bounded_in_time_and_bytes() -> None:
    recent = Recent(most_ns=1000, most_bytes=100)
    for number in range(500):
        recent.add(Chunk(b"x" * 30, 2, number * 10, number * 10 + 5))
        assert recent.kept_bytes <= 100
    assert (recent.packets, recent.kept_packets, recent.capture(b"h")) == (1000, 6, b"h" + b"x" * 90)
    recent = Recent(most_ns=1000, most_bytes=1 << 20)
    for number in range(500):
        recent.add(Chunk(b"x", 1, number * 100, number * 100))
    assert (recent.kept_packets, recent.span_ns) == (11, 1000)


def test_metrics_have_the_numbers_and_few_labels(stalled: Path) -> None:
    metrics = Metrics()
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port = any_port.getsockname()[1]
    end = serve(metrics, port)
    try:
        assert "tcpwin_watch_packets_total 0" in fetched(port, "/metrics")
        with pytest.raises(urllib.error.HTTPError):
            fetched(port, "/")
        packets = watched(stalled, metrics)
        text = fetched(port, "/metrics")
    finally:
        end()
    assert f"tcpwin_watch_packets_total {packets}" in text
    assert 'tcpwin_watch_problems{limit="receiver_application"} 1' in text
    assert 'tcpwin_watch_strikes_total{rule="TW201"} 1' in text
    labels = [line for line in text.splitlines() if "{" in line]
    assert len(labels) < 40


def fetched(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=HANG_S) as answer:
        return str(answer.read().decode())


def watched(path: Path, metrics: Metrics) -> int:
    rounds: list[Round] = []

    def tell(notice: Notice) -> None:
        metrics.take(notice)
        rounds.extend([notice] if isinstance(notice, Round) else [])

    source = GrowingFile(str(path))
    Watch(source, Settings(duration_ns=6 * 10**9), tell).run()
    source.close()
    return rounds[-1].packets


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    assert "-i IFACE, or --follow FILE" in refused("watch", status=2)
    assert "-i IFACE, or --follow FILE" in refused("watch", "-i", "lo", "--follow", "-", status=2)
    assert "no interface nonsense9" in refused("watch", "-i", "nonsense9")
    assert "No such file" in refused("watch", "--follow", tmp_path / "absent.pcap")
    text = tmp_path / "text.pcap"
    text.write_text("nothing that anybody captured")
    assert "not a pcap file" in refused("watch", "--follow", text)
    text.write_bytes(b"\n\r\r\n" + bytes(30))
    assert "a pcapng file" in refused("watch", "--follow", text)
    assert "filter in the program that writes the file" in refused(
        "watch", "--follow", text, "--filter", "tcp", status=2
    )
    file = tmp_path / "file"
    file.write_text("")
    assert "file" in refused("watch", "--follow", text, "-o", file / "out")


def test_old_parts_are_cleared_and_foreign_folders_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    (tmp_path / "half.part").mkdir()
    Bundles(tmp_path, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


@pytest.fixture(autouse=True)
def _no_threads_are_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("took_s", "span_s", "pause_s"),
    [
        (0.1, 60, 10),  # by --every alone
        (0.4, 60, 20),  # a fiftieth of the time
        (5, 60, 30),  # each packet is judged twice before it is dropped
        (5, 0, 10),
    ],
)
def test_a_round_that_takes_long_is_followed_by_a_pause(took_s: float, span_s: int, pause_s: int) -> None:
    took_ns, every_ns, span_ns = (int(each * 1e9) for each in (took_s, 10, span_s))
    assert pause_ns(took_ns, every_ns, span_ns) == pause_s * 1_000_000_000
