"""The command as a process: closed pipes, Ctrl-C, unusual names and locales."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path
from typing import IO

import forked
import pytest
from cases import all_cases
from cli.command import CAPTURES, CUT_BLOCK, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TCPWIN, TEXT, refused, tcpwin
from live import HANG_S, is_asleep, until
from spread import some_by_day

FULL = Path("/dev/full")
BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
NO_TCP = struct.pack("<IIII", 1_600_000_000, 0, 60, 60) + bytes(60)
# Ethernet, IPv4 (20 bytes, 40 in all, protocol 6) from 10.0.0.1 to 10.0.0.2, TCP (20 bytes, ACK).
FRAME = (
    bytes.fromhex("020000000002 020000000001 0800")
    + bytes.fromhex("4500 0028 0001 0000 4006 0000 0a000001 0a000002")
    + bytes.fromhex("9c40 0050 00000001 00000001 5010 0200 0000 0000")
)
SEGMENT = struct.pack("<IIII", 1_600_000_000, 0, len(FRAME), len(FRAME)) + FRAME
ODD_NAMES = [
    b"\xff\xfe.pcap",
    b"new\nline.pcap",
    b"quote\"'.pcap",
    b"<script>.pcap",
    b"\x1b[31mred.pcap",
    b"-dash.pcap",
]


@all_cases(
    "arguments",
    [
        ["packets", SLOW_READER],
        ["packets", "--format", "jsonl", SLOW_READER],
        ["analyze", "--json", MANY_SHORT],
        ["analyze", "--json", KEEP_ALIVE],
        ["analyze", "--limit", "65", MANY_SHORT],
        ["analyze", KEEP_ALIVE],
        ["fields"],
        ["--help"],
    ],
    ids=lambda arguments: "-".join(str(part).rpartition("/")[2] for part in arguments),
)
@all_cases("wanted_bytes", [0, 10])
def test_a_closed_pipe_is_not_an_error(arguments: list[object], wanted_bytes: int) -> None:
    command = [TCPWIN, *map(str, arguments)]
    reader, writer = os.pipe()
    with forked.start(command, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        if wanted_bytes:
            assert len(os.read(reader, wanted_bytes)) == wanted_bytes
        os.close(reader)
        _, stderr = process.communicate(timeout=HANG_S)
    assert stderr == b""
    assert process.returncode == 0


class Feed(threading.Thread):
    """Write the same packets endlessly."""

    def __init__(self, descriptor: int, record: bytes) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._record = record
        self._is_wanted = True

    def run(self) -> None:
        data = HEADER
        try:
            while self._is_wanted:
                os.write(self._descriptor, data)
                data = self._record * 800
        except OSError:
            pass

    def stop(self) -> None:
        self._is_wanted = False
        self.join()


@pytest.mark.parametrize("record", [pytest.param(SEGMENT, id="segments"), pytest.param(NO_TCP, id="no-tcp")])
@pytest.mark.parametrize("command", ["analyze", "packets"])
def test_interrupt_while_a_fifo_is_read(command: str, record: bytes, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with forked.start([TCPWIN, command, fifo], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        descriptor = os.open(fifo, os.O_WRONLY)
        feed = Feed(descriptor, record)
        feed.start()
        # The file is open, so the handling of Ctrl-C is in place. Send it while packets are read.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=HANG_S)
        finally:
            process.kill()
            feed.stop()
            os.close(descriptor)
    assert process.returncode == 130
    assert stderr.strip() == b"tcpwin: interrupted"


def waiting_bytes(pipe: IO[bytes] | None) -> int:
    """Return how many unread bytes are in a pipe (FIONREAD)."""
    assert pipe is not None
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0])


@pytest.mark.parametrize("command", ["analyze", "packets"])
def test_interrupt_while_standard_input_is_awaited(command: str) -> None:
    with subprocess.Popen(
        [TCPWIN, command, "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(HEADER)
        process.stdin.flush()
        # It has read the header, and waits for more.
        until(lambda: waiting_bytes(process.stdin) == 0 and is_asleep(process.pid))
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=HANG_S)
        finally:
            process.kill()
        said = process.stderr.read()
    assert process.returncode == 130
    assert said.strip() == b"tcpwin: interrupted"


@pytest.mark.parametrize("name", some_by_day(ODD_NAMES))
def test_file_names_of_all_kinds(name: bytes, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_bytes(KEEP_ALIVE.read_bytes())
    raw = os.fsencode(path)
    expected = forked.run([TCPWIN, "packets", KEEP_ALIVE], capture_output=True, check=True, timeout=HANG_S).stdout
    for arguments, check in (
        ([b"analyze"], lambda out: b"21 packets" in out and out.count(b"\n") > 5),
        ([b"analyze", b"--json"], lambda out: len(json.loads(out)["connections"]) == 1),
        ([b"packets"], lambda out: out == expected),
    ):
        done = forked.run([os.fsencode(TCPWIN), *arguments, raw], capture_output=True, timeout=HANG_S, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert check(done.stdout)
    first = forked.run([os.fsencode(TCPWIN), b"analyze", raw], capture_output=True, check=True, timeout=HANG_S).stdout
    assert first.decode().splitlines()[-3].endswith(" (pcap)")
    assert b"\x1b" not in first


@pytest.mark.parametrize("name", [b"\xff.pcap", b"new\nline.pcap", b"\x1b[31m.pcap"])
def test_complaints_about_odd_names_are_one_line(name: bytes, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
    assert "No such file or directory" in refused("analyze", path)
    Path(path).write_bytes(TEXT.read_bytes())
    assert "looks like a text file" in refused("packets", path)
    Path(path).write_bytes(CUT_BLOCK.read_bytes())
    done = tcpwin("analyze", path)
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1
    assert b"\x1b" not in done.stderr + done.stdout


def test_name_that_begins_with_a_dash(tmp_path: Path) -> None:
    (tmp_path / "-x.pcap").write_bytes(KEEP_ALIVE.read_bytes())
    assert tcpwin("analyze", "--", "-x.pcap", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_locales(locale: str) -> None:
    done = tcpwin("analyze", KEEP_ALIVE, env={"LC_ALL": locale, "PATH": os.environ["PATH"]})
    assert done.returncode == 0
    assert "client 127.0.0.1:42942 → server 127.0.0.1:9002" in done.stdout.decode()


def test_encodings_that_lack_a_character() -> None:
    for arguments in (["analyze"], ["analyze", "--json"], ["analyze", "--connection", "0"]):
        done = tcpwin(*arguments, SLOW_READER, env={"PYTHONIOENCODING": "ascii", "PATH": os.environ["PATH"]})
        assert done.returncode == 0
        assert b"10.9.2.2" in done.stdout


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    some_by_day(
        [
            ["--help"],
            ["--version"],
            ["analyze", KEEP_ALIVE],
            ["analyze", "--json", KEEP_ALIVE],
            ["bdp", "--rate", "100Mbit", "--rtt", "50ms"],
            ["check", KEEP_ALIVE],
            ["check", "--format", "github", KEEP_ALIVE],
            ["check", "--format", "json", KEEP_ALIVE],
            ["check", "--format", "junit", KEEP_ALIVE],
            ["check", "--format", "sarif", KEEP_ALIVE],
            ["compare", KEEP_ALIVE, KEEP_ALIVE],
            ["explain", "TW201"],
            ["fields"],
            ["lab", "list"],
            ["nstat", "--only", "receiver", BUNDLE],
            ["packets", KEEP_ALIVE],
            ["packets", "--format", "jsonl", SLOW_READER],
            ["reference"],
            ["report", "--format", "md", KEEP_ALIVE],
            ["rules"],
            ["ss", BUNDLE],
        ]
    ),
    ids=lambda arguments: "-".join(str(part).rpartition("/")[2] for part in arguments),
)
def test_a_full_disk_is_said_in_one_line(arguments: list[object]) -> None:
    with FULL.open("wb") as full:
        done = forked.run(
            [TCPWIN, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, timeout=HANG_S, check=False
        )
    said = done.stderr.decode()
    assert done.returncode == 3, said
    assert said.startswith("tcpwin: ")
    assert said.endswith("No space left on device\n")
    assert said.count("\n") == 1


def test_standard_output_closed() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" analyze "$1" >&-', TCPWIN, KEEP_ALIVE],
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 3)
