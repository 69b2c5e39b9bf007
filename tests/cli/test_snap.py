"""`tcpwin snap`, and the shell lines for hosts without tcpwin."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cli.command import TCPWIN, refused, tcpwin
from live import HANG_S, is_asleep, make_listener, need_right_to_capture, until, wait_for_hand_over

import tcpwin as library
from tcpwin.hosts import SnapshotFile, SocketSample
from tcpwin.units import bytes_text

PAGE = Path(library.__file__).parent / "docs" / "hosts" / "collecting.md"
SUMMARY = re.compile(r"([\d,]+) samples? of ([\d,]+) sockets? at most in [\d.]+ m?s, \d+ skipped, [\d.]+ % of a core")


@contextmanager
def recording(path: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a recording, and wait until it has written a sample; kill it at the end if it still runs."""
    command = [str(each) for each in (TCPWIN, "snap", "-o", path, *arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        until(lambda: lines_in(path) >= 3 or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_in(path: Path) -> int:
    """Return the number of lines written so far."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, whose lines must all be complete."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_it_records_for_a_time(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    done = tcpwin("snap", "--for", "300ms", "--every", "100ms", "-o", path)
    assert done.returncode == 0
    assert done.stdout == b""
    first, second = done.stderr.decode().splitlines()
    assert SUMMARY.fullmatch(first)
    assert second == f"{path}: {bytes_text(path.stat().st_size)} in 1 file"
    records = lines_of(path)
    assert (records[0]["schema"], records[0]["every_ns"]) == ("tcpwin/snap/1", 100_000_000)
    assert (records[-1]["type"], records[-1]["reason"]) == ("end", "time")
    assert records[-1]["samples"] + records[-1]["skipped"] == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_well(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    with recording(path, "--every", "50ms") as process:
        process.send_signal(number)
        _, said = process.communicate(timeout=HANG_S)
        assert process.returncode == 0
    assert SUMMARY.match(said.decode())
    assert lines_of(path)[-1]["reason"] == "asked"


def test_a_kill_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "snap.jsonl"
    with recording(path, "--every", "10ms") as process:
        process.kill()
        process.wait(timeout=HANG_S)
    assert path.read_bytes().endswith(b"\n")
    # A host with many sockets has samples in several lines.
    assert {record["type"] for record in lines_of(path)} - {"more"} == {"start", "sample"}
    file = SnapshotFile(path)
    assert list(file)
    assert file.unknown.count == 0


@pytest.mark.usefixtures("loopback")
def test_a_transfer_is_recorded_with_its_packets(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """One command creates a folder; the capture's connection and the samples describe the same data."""
    tool("tcpdump")
    need_right_to_capture()
    folder = tmp_path / "trouble"
    payload = b"p" * 200_000
    with make_listener() as listener:
        port = listener.getsockname()[1]
        wanted = f"(sport = :{port} or dport = :{port}) and state connected"
        arguments = ("--capture", "lo", "--filter", wanted, "--every", "50ms")
        folder.mkdir()
        command = [str(each) for each in (TCPWIN, "snap", "-o", f"{folder}/", *arguments)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        try:
            until(lambda: lines_in(folder / "snap.jsonl") >= 2 or process.poll() is not None)
            with (
                socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as client,
                listener.accept()[0] as server,
            ):
                server.settimeout(HANG_S)
                client.sendall(payload)
                received = b""
                while len(received) < len(payload):
                    received += server.recv(len(payload))
                client_port = client.getsockname()[1]
                sent_all = f'"bytes_sent":{len(payload)},'.encode()
                until(lambda: sent_all in (folder / "snap.jsonl").read_bytes())
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 0, said
    assert sorted(each.name for each in folder.iterdir()) == ["packets.pcap", "snap.jsonl"]
    size = f"{bytes_text((folder / 'packets.pcap').stat().st_size)} in 1 file"
    assert re.fullmatch(rf"{folder}/packets\.pcap: \d+ packets written; kept {size}", said.decode().splitlines()[2])
    (connection,) = library.analyze(folder / "packets.pcap").connections
    assert {connection.a.port, connection.b.port} == {port, client_port}
    samples = [each for each in SnapshotFile(folder / "snap.jsonl") if isinstance(each, SocketSample)]
    assert {(each.local_port, each.peer_port) for each in samples} == {(port, client_port), (client_port, port)}
    sent = [each for each in samples if each.local_port == client_port and each.state == "ESTAB"]
    assert sent[-1].bytes_sent == len(payload)
    assert max(connection.a_to_b.unique_bytes, connection.b_to_a.unique_bytes) == len(payload)


def send(count: int, *, size_bytes: int = 9000, now_and_then: Callable[[], object] = lambda: None) -> None:
    """Send pieces of at least a packet over loopback and read them; call a function after every 500."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname(), timeout=HANG_S) as client,
        listener.accept()[0] as server,
    ):
        server.settimeout(HANG_S)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(count):
            if number % 500 == 499:
                now_and_then()
            client.sendall(bytes(size_bytes))
            left = size_bytes
            while left:
                left -= len(server.recv(left))


@pytest.mark.usefixtures("loopback")
def test_a_ring_is_written_and_read_as_one_capture(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """More packets than are kept: the summary reports both, and the folder is analysed without a choice."""
    tool("tcpdump")
    need_right_to_capture()
    folder = tmp_path / "rot"
    folder.mkdir()
    arguments = ("--capture", "lo", "--max-size", "64KiB", "--keep", "2", "--every", "10ms")
    command = [str(each) for each in (TCPWIN, "snap", "-o", f"{folder}/", *arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        older = folder / "snap.jsonl.1"
        seen: set[int] = set()

        def has_turned_twice() -> bool:
            # The more changes, the sooner a file is full.
            send(100)
            with suppress(FileNotFoundError):
                seen.add(older.stat().st_ino)
            return len(seen) >= 2

        until(lambda: has_turned_twice() or process.poll() is not None)
        send(10_000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=HANG_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, said
    names = ["packets.pcap", "packets.pcap.1", "snap.jsonl", "snap.jsonl.1"]
    assert sorted(each.name for each in folder.iterdir()) == names
    sizes = {name: (folder / name).stat().st_size for name in names}
    _, samples, packets = said.decode().splitlines()
    kept = f"{bytes_text(sizes['snap.jsonl'] + sizes['snap.jsonl.1'])} in 2 files"
    match = re.fullmatch(rf"{folder}/snap\.jsonl: [\d.]+ [kM]?B in (\d+) files written; kept {kept}", samples)
    assert int(match[1]) >= 3
    kept = f"{bytes_text(sizes['packets.pcap'] + sizes['packets.pcap.1'])} in 2 files"
    match = re.fullmatch(rf"{folder}/packets\.pcap: ([\d,]+) packets written; kept {kept}", packets)
    written = int(match[1].replace(",", ""))
    each_file = [library.analyze(folder / name).capture.packets for name in names[:2]]
    assert library.analyze(folder).capture.packets == sum(each_file) < written
    done = tcpwin("analyze", folder)
    assert done.returncode == 0, done.stderr
    assert f"\ncapture  {folder}: packets.pcap (2 files) (pcap)\n" in done.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "x", "--every", "1ms"), "Invalid value for '--every': '1ms' is not between 10 ms and 1 hour."),
        (
            ("-o", "x", "--every", "fast"),
            "Invalid value for '--every': 'fast' is not understood: write it as 200ms or 1s.",
        ),
        (
            ("-o", "x", "--every", "200"),
            "Invalid value for '--every': '200' is not understood: write it as 200ms or 1s.",
        ),
        (
            ("-o", "x", "--for", "-1s"),
            "Invalid value for '--for': '-1s' is not understood: write it as 60s, 10min or 2h.",
        ),
        (("-o", "x", "--max-size", "1k"), "Invalid value for '--max-size': '1k' is not between 64 KiB and 1 TiB."),
        (("-o", "x", "--keep", "0"), "Invalid value for '--keep': 0 is not in the range 1<=x<=1000."),
        (
            ("-o", "x", "--filter", "dport = :443 and dst"),
            "Invalid value for '--filter': expected an address, a network or a :port, at character 21.",
        ),
        (("-o", "-"), "samples are written to files: name one with -o FILE"),
        (("-o", "x.pcap"), "x.pcap is needed for the packets: name the samples differently, such as x.jsonl"),
        ((), "Missing option '-o' / '--output'."),
    ],
)
def test_wrong_usage_is_reported(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert refused("snap", *arguments, status=2, cwd=tmp_path).splitlines()[0] == f"tcpwin: {said}"
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_done_is_one_line(tmp_path: Path, tool: Callable[[str], str]) -> None:
    path = tmp_path / "snap.jsonl"
    path.write_text("mine")
    assert refused("snap", "-o", path) == f"tcpwin: {path} already exists; choose another file\n"
    assert path.read_text() == "mine"
    absent = tmp_path / "absent" / "snap.jsonl"
    assert refused("snap", "-o", absent) == f"tcpwin: {absent}: No such file or directory\n"
    other = tmp_path / "other.jsonl"
    tool("tcpdump")
    said = refused("snap", "-o", other, "--capture", "no-such-0")
    assert said.startswith("tcpwin: no interface no-such-0; available: ")
    without = {**os.environ, "PATH": str(tmp_path)}
    if not any(Path(folder, "tcpdump").exists() for folder in ("/usr/sbin", "/sbin", "/usr/local/sbin")):
        said = refused("snap", "-o", other, "--capture", "lo", env=without)
        assert said == "tcpwin: capturing packets needs tcpdump, which is not installed\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["snap.jsonl"]


def test_a_full_disk_is_one_line() -> None:
    assert refused("snap", "-o", "/dev/full") == "tcpwin: /dev/full already exists; choose another file\n"


def shell_lines() -> str:
    """Return the script in the page."""
    found = re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)
    return found[1]


def test_the_shell_lines_of_the_page_run_and_are_read(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("ss")
    script = shell_lines()
    assert script.count("+ 60)") == 1
    # A busy machine takes longer for two rounds.
    for seconds in (2, 20, 200):
        place = tmp_path / str(seconds)
        place.mkdir()
        command = ["sh", "-eu", "-c", script.replace("+ 60)", f"+ {seconds})")]
        subprocess.run(command, cwd=place, check=True, stdin=subprocess.DEVNULL)
        folder = place / "tcpwin-snapshots"
        if (folder / "counters.txt").read_text().count("### ") >= 2:
            break
    files = {path.name: SnapshotFile(path) for path in sorted(folder.iterdir())}
    assert {name: file.format for name, file in files.items()} == {
        "counters.txt": "proc_net",
        "sockstat.txt": "sockstat",
        "ss.txt": "ss",
        "sysctl.txt": "sysctl",
        "uname.txt": "uname",
    }
    samples = {name: list(file) for name, file in files.items()}
    assert {name: file.unknown.first for name, file in files.items()} == {name: [] for name in files}
    stamps = (folder / "counters.txt").read_text().count("### ")
    assert stamps >= 2
    assert len(samples["counters.txt"]) == len(samples["sockstat.txt"]) == stamps
    assert all(sample.time_ns is not None for sample in samples["counters.txt"])
    assert all("fastopen_key" not in name for sample in samples["sysctl.txt"] for name in sample.values)
    assert samples["sysctl.txt"][0].values["net.ipv4.tcp_rmem"]


@pytest.mark.usefixtures("loopback")
def test_the_lines_of_the_page_make_a_bundle(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Run all lines in one shell, as pasted, while capturing packets; with smaller numbers, on loopback."""
    for name in ("ss", "tcpdump"):
        tool(name)
    need_right_to_capture()
    packets, pack = re.findall(r"^    ((?:tcpdump|tar) .*)$", PAGE.read_text(encoding="utf8"), re.MULTILINE)
    assert (packets.count(" eth0 "), packets.count(" -C 64 ")) == (1, 1)
    packets = packets.replace(" eth0 ", " lo ").replace(" -C 64 ", " -C 1 ")
    is_over = '[ "$(date +%s)" -lt "$end" ]'
    assert shell_lines().count(is_over) == 1
    # Wait until the packets arrive, however long that takes.
    script = shell_lines().replace(is_over, "[ ! -e ../enough ]") + pack + "\n"
    folder = tmp_path / "tcpwin-snapshots"
    collecting = subprocess.Popen(["sh", "-eu", "-c", script], cwd=tmp_path, stdin=subprocess.DEVNULL)
    capturing = None
    try:
        until(folder.exists)
        capturing = subprocess.Popen(
            packets.split(), cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert b"listening on lo" in capturing.stderr.readline()
        until(lambda: (folder / "sockstat.txt").exists())
        tcpdump = capturing
        # Packets that tcpdump has not read must fit into its buffer.
        send(5_000, now_and_then=lambda: until(lambda: is_asleep(tcpdump.pid)))
        wait_for_hand_over(tcpdump)
        capturing.send_signal(signal.SIGINT)
        _, said = capturing.communicate(timeout=HANG_S)
        assert capturing.returncode == 0, said
        (tmp_path / "enough").touch()
        assert collecting.wait(timeout=HANG_S) == 0
    finally:
        for each in (collecting, capturing):
            if each is not None:
                each.kill()
                each.communicate()
    names = {each.name for each in folder.iterdir()}
    assert {
        "packets.pcap0",
        "packets.pcap1",
        "counters.txt",
        "sockstat.txt",
        "ss.txt",
        "sysctl.txt",
        "uname.txt",
    } <= names
    found = library.analyze(tmp_path / "trouble.tar.gz")
    parts = [library.analyze(folder / name).capture.packets for name in names if name.startswith("packets.pcap")]
    assert found.capture.packets == sum(parts)
    # Other programs may use the loopback device at the same time.
    assert 45_000_000 in {each.a_to_b.unique_bytes + each.b_to_a.unique_bytes for each in found.connections}
    assert [sorted(file.format for file in host.files) for host in found.hosts] == [
        ["proc_net", "sockstat", "ss", "sysctl", "uname"]
    ]
