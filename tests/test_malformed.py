"""Damaged and odd captures from elsewhere: an analysis with warnings, or one line and exit status 3.

The truth is what capinfos and tshark counted (NAME.expect.json), or follows from the bytes if they could not read the
file or disagree. Each such file is listed below with its reason.
"""

import json
import os
import re
import resource
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cases import all_cases
from live import HANG_S
from reference import ABSENT, REFERENCE_CAPTURES

TCPWIN = Path(sys.executable).with_name("tcpwin")
MALFORMED = REFERENCE_CAPTURES / "malformed"
EXPECTED = REFERENCE_CAPTURES / "malformed-expect"
FILES = sorted(path for path in MALFORMED.rglob("*") if path.is_file()) or [MALFORMED / "absent"]
MEBIBYTE = 1 << 20
BASE_BYTES = 150 * MEBIBYTE
"""Memory of Python, the engine and their libraries; beyond it, memory may grow by a small multiple of the file."""

REFUSED = {
    "test__pcapng.org__bad__icmp.ntar": "begins with ff d8 ff e0 .. JFIF: a picture; tshark dissects it as one frame",
    "tests__pcap-invalid-version-1.pcap": "version 1.4 at byte 4: libpcap and Wireshark refuse it too",
    "tests__pcapng-invalid-vers-1.pcapng": "section version 0.1: libpcap and Wireshark refuse it too",
    "tests__pcapng-invalid-vers-2.pcapng": "section version 1.1: libpcap and Wireshark refuse it too",
    "tests__shb-option-too-long.pcapng": "the first block's two lengths differ: libpcap and Wireshark refuse it too",
    "6185045124251648": "version 2.8224 (02 00 20 20) at byte 4: libpcap refuses it; Wireshark looks at the 2 alone",
}
PACKETS = {
    "output_be__basic__test018.pcapng": (4, "tshark shows 4 custom blocks as frames; capinfos counts 4 packets"),
    "output_le__basic__test018.pcapng": (4, "tshark shows 4 custom blocks as frames; capinfos counts 4 packets"),
    "output_be__difficult__test202.pcapng": (8, "tshark shows 3 custom blocks as frames; capinfos counts 8 packets"),
    "output_le__difficult__test202.pcapng": (8, "tshark shows 3 custom blocks as frames; capinfos counts 8 packets"),
    "crash-exception-cast-constructed-record": (
        2,
        "records of 16-byte headers at 24 and 299 are whole, that at 574 claims 167,776,960 bytes; Wireshark guesses "
        "24-byte headers (RedHat 6.1) and stops after one, libpcap shows two",
    ),
    "5631583764873216": (1, "link type 2105376 with reserved bits: Wireshark refuses it, its record is whole"),
    "5685520970809344": (1, "link type 2105376 with reserved bits: Wireshark refuses it, its first record is whole"),
    "5717750942269440": (2, "record 2 claims 411,435,009 bytes: tshark shows the two before it"),
    "5752969003008000": (1, "link type 2105376 with reserved bits: Wireshark refuses it, its first record is whole"),
    "tests__filter__brcm-tag.pcap": (15, "LINKTYPE 281, which Wireshark does not know; libpcap shows 15"),
    "tests__filter__dsa.pcap": (8, "LINKTYPE 284, which Wireshark does not know; libpcap shows 8"),
    "tests__dsa-high-vid.pcap": (4, "LINKTYPE 284, which Wireshark does not know; libpcap shows 4"),
    "tests__edsa.pcap": (10, "LINKTYPE 285, which Wireshark does not know; libpcap shows 10"),
    "tests__hoobr_juniper3.pcap": (1, "LINKTYPE 132 with FCS bits, which Wireshark does not know; libpcap shows 1"),
    "tests__vtp_asan-3.pcap": (1, "LINKTYPE 182, which Wireshark does not know; libpcap shows 1"),
}


def exception(table: dict[str, object], path: Path) -> str | None:
    return next((ending for ending in table if path.name.endswith(ending)), None)


def name_of(path: Path) -> str:
    return str(path.relative_to(MALFORMED))[-60:]


@pytest.fixture(autouse=True)
def _needs_the_files() -> None:
    if not MALFORMED.is_dir():
        pytest.skip(f"{ABSENT}: set TCPWIN_REFERENCE_CAPTURES to their folder")


MEASURE = """
import io, json, sys
from unittest.mock import patch
from tcpwin.cli import main

def run(*arguments):
    streams = {name: io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape", write_through=True)
               for name in ("stdout", "stderr")}
    with patch.multiple(sys, **streams):
        try:
            main(arguments)
            status = 0
        except SystemExit as leave:
            status = leave.code
        told = [each.buffer.getvalue().decode("latin1") for each in streams.values()]
    return [status, *told]

for path in sys.argv[1:]:
    done = [run("analyze", "--json", path), run("packets", path), run("analyze", path)]
    with open("/proc/self/status") as status:
        most_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    print(json.dumps([path, done, most_kib]))
"""
"""Run three commands on each file, and print the process's peak memory in KiB.

Not `ru_maxrss`: a process started with vfork inherits its parent's peak.
"""


@dataclass(frozen=True)
class Done:
    """The outcome of a command on a file."""

    status: int
    stdout: str
    stderr: str


@cache
def results() -> dict[Path, tuple[list[Done], int]]:
    """Run the commands on every file, smallest first because peak memory only grows; return memory in bytes."""
    files = sorted(FILES, key=lambda path: path.stat().st_size)
    command = [sys.executable, "-c", MEASURE, *files]
    told = subprocess.run(command, capture_output=True, check=True, timeout=HANG_S).stdout
    return {
        Path(path): ([Done(*each) for each in done], most_kib * 1024)
        for path, done, most_kib in map(json.loads, told.splitlines())
    }


def expected_packets(path: Path) -> int | None:
    """Return the count of capinfos, or, if it gave up, the frames that tshark showed before it gave up too."""
    entry = json.loads((EXPECTED / f"{path.relative_to(MALFORMED)}.expect.json").read_text(encoding="utf8"))
    counted = re.search(r"^Number of packets:\s+(\d+)$", entry["capinfos"]["out"], re.MULTILINE)
    if counted:
        return int(counted[1])
    return entry["tshark"]["frames"] or None


@all_cases("path", FILES, ids=name_of)
def test_analysis_or_one_line(path: Path) -> None:
    (done, rows, text), most_bytes = results()[path]
    for result in (done, rows, text):
        assert result.status in (0, 3), result.stderr
        for word in ("Traceback", "panicked", "internal error", "Exception"):
            assert word not in result.stderr
        assert all(line.startswith("tcpwin: ") for line in result.stderr.splitlines())
    assert most_bytes < BASE_BYTES + 20 * path.stat().st_size
    assert done.status == rows.status == text.status
    if done.status == 3:
        assert done.stderr.count("\n") == rows.stderr.count("\n") == 1
        assert done.stdout == ""
        assert expected_packets(path) in (None, 0) or exception(REFUSED, path), done.stderr
        return
    assert not exception(REFUSED, path)
    document = json.loads(done.stdout)
    packets = sum(file["packets"] for file in document["capture"]["files"])
    if ending := exception(PACKETS, path):
        assert packets == PACKETS[ending][0], PACKETS[ending][1]
    else:
        assert packets == expected_packets(path)
    told = [warning for file in document["capture"]["files"] for warning in file["warnings"]]
    assert done.stderr.count("\n") == rows.stderr.count("\n") == len(told)
    assert rows.stdout.count("\n") == 1 + document["capture"]["segments"]


@all_cases("path", FILES, ids=name_of)
def test_damage_found_by_others_is_reported(path: Path) -> None:
    entry = json.loads((EXPECTED / f"{path.relative_to(MALFORMED)}.expect.json").read_text(encoding="utf8"))
    said = (entry["capinfos"]["err"] + entry["tshark"]["err"] + entry["tcpdump_libpcap"]["err"]).lower()
    is_cut = "cut short" in said or "damaged or corrupt" in said
    [_, _, text], _ = results()[path]
    if is_cut:
        assert text.stderr, said
    assert "(at byte " in text.stderr or text.status == 3 or not text.stderr


@pytest.mark.parametrize("command", ["analyze", "packets"])
def test_all_together_within_memory(command: str) -> None:
    """Read all readable files as one capture with a limited address space."""
    readable = [path for path in FILES if not exception(REFUSED, path) and (expected_packets(path) or 0) > 0]
    limit = 2048 * MEBIBYTE

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [TCPWIN, command, *readable],
        capture_output=True,
        timeout=HANG_S,
        check=False,
        preexec_fn=bound,
        env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert b"Traceback" not in done.stderr
    assert len(readable) > 60


def test_every_exception_is_of_a_file() -> None:
    names = [path.name for path in FILES]
    for ending in (*REFUSED, *PACKETS):
        assert sum(name.endswith(ending) for name in names) == 1, ending
