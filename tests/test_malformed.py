"""Damaged and odd captures from elsewhere: an analysis with warnings, or one line and exit status 3.

Truth is what capinfos and tshark counted, where they read the file (NAME.expect.json), and what follows from the bytes
where they did not or disagree. Each such file stands below with its reason.
"""

import json
import os
import re
import resource
import subprocess
import sys
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
"""Python, the engine and what they load; beyond it, memory may grow by a small multiple of the file."""

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


def run(*arguments: object) -> tuple[subprocess.CompletedProcess[bytes], int]:
    """A command's result and the most memory that it had, in bytes."""
    command = [TCPWIN, *map(str, arguments)]
    # A process of its own between, whose only child is the command: its ru_maxrss is the command's.
    measure = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True)\n"
        "most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(json.dumps([done.returncode, done.stdout.decode('latin1'), done.stderr.decode('latin1'), most]))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", measure, *command], capture_output=True, check=True, timeout=HANG_S
    ).stdout
    status, stdout, stderr, most_kib = json.loads(told)
    done = subprocess.CompletedProcess(command, status, stdout.encode("latin1"), stderr.encode("latin1"))
    return done, most_kib * 1024


def expected_packets(path: Path) -> int | None:
    """As capinfos counted; where it gave up, the frames that tshark showed before it did so too."""
    entry = json.loads((EXPECTED / f"{path.relative_to(MALFORMED)}.expect.json").read_text(encoding="utf8"))
    counted = re.search(r"^Number of packets:\s+(\d+)$", entry["capinfos"]["out"], re.MULTILINE)
    if counted:
        return int(counted[1])
    return entry["tshark"]["frames"] or None


@all_cases("path", FILES, ids=name_of)
def test_analysis_or_one_line(path: Path) -> None:
    done, most_bytes = run("analyze", "--json", path)
    rows, rows_most_bytes = run("packets", path)
    for result in (done, rows):
        assert result.returncode in (0, 3), result.stderr
        for word in (b"Traceback", b"panicked", b"internal error", b"Exception"):
            assert word not in result.stderr
        assert all(line.startswith(b"tcpwin: ") for line in result.stderr.splitlines())
    assert max(most_bytes, rows_most_bytes) < BASE_BYTES + 20 * path.stat().st_size
    assert done.returncode == rows.returncode
    if done.returncode == 3:
        assert done.stderr.count(b"\n") == rows.stderr.count(b"\n") == 1
        assert done.stdout == b""
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
    assert done.stderr.count(b"\n") == rows.stderr.count(b"\n") == len(told)
    assert rows.stdout.count(b"\n") == 1 + document["capture"]["segments"]


@all_cases("path", FILES, ids=name_of)
def test_damage_that_others_found_is_told(path: Path) -> None:
    entry = json.loads((EXPECTED / f"{path.relative_to(MALFORMED)}.expect.json").read_text(encoding="utf8"))
    said = (entry["capinfos"]["err"] + entry["tshark"]["err"] + entry["tcpdump_libpcap"]["err"]).lower()
    is_cut = "cut short" in said or "damaged or corrupt" in said
    done = subprocess.run([TCPWIN, "analyze", path], capture_output=True, timeout=HANG_S, check=False)
    if is_cut:
        assert done.stderr, said
    assert b"(at byte " in done.stderr or done.returncode == 3 or not done.stderr


@pytest.mark.parametrize("command", ["analyze", "packets"])
def test_all_together_within_memory(command: str) -> None:
    """The readable ones as one capture, with the address space bounded."""
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
