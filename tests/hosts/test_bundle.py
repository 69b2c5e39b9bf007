"""Bundles: their members and hosts; a hostile one neither writes nor unpacks more than allowed."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import os
import signal
import stat
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli.command import TCPWIN
from hypothesis import given
from hypothesis import strategies as st
from live import HANG_S, is_asleep, until
from reference import LAB_RUNS

from tcpwin.errors import SnapshotError
from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.bundle import Bundle, Member
from tcpwin.hosts.bundle_capture import open_capture

NETSH = b"Receive Window Auto-Tuning Level : normal\nECN Capability : disabled\n"
IPERF3 = b"[ ID] Interval Transfer Bitrate\n[  5] 0.00-1.00 sec 1.00 MBytes 8.39 Mbits/sec\n"
PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
PCAPNG = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
LAB = LAB_RUNS / "slow_reader"
Files = dict[str, bytes]

FILES: Files = {
    "run/netsh_web.txt": NETSH,
    "run/iperf3-web-before.log": IPERF3,
    "run/web.pcap": PCAP,
    "run/db.pcapng.gz": gzip.compress(PCAPNG),
    "run/notes.md": b"Dear all\n",
    "run/netsh_db.txt.gz": gzip.compress(NETSH),
    "run/empty": b"",
    "run/.hidden": NETSH,
    "run/__MACOSX/._web.pcap": PCAP,
}


def write_folder(path: Path, files: Files) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def write_zip(path: Path, files: Files) -> Path:
    with zipfile.ZipFile(path / "b", "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name, (2026, 11, 21, 19, 22, 50)), data, zipfile.ZIP_DEFLATED)
    return path / "b"


def tar_with(files: Files) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as out:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1795288970
            out.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def write_tar(path: Path, files: Files) -> Path:
    (path / "b").write_bytes(tar_with(files))
    return path / "b"


def write_tgz(path: Path, files: Files) -> Path:
    (path / "b").write_bytes(gzip.compress(tar_with(files)))
    return path / "b"


WRITERS = [write_folder, write_zip, write_tar, write_tgz]
Writer = Callable[[Path, Files], Path]


def described(member: Member) -> tuple[str, str, str | None, str, int]:
    return member.name, member.kind, member.format, member.label, member.size_bytes


@pytest.mark.parametrize("write", WRITERS)
def test_what_a_bundle_lists(write: Writer, tmp_path: Path) -> None:
    with Bundle.open(write(tmp_path, FILES)) as bundle:
        assert sorted(described(member) for member in bundle.members) == sorted(
            [
                ("run/netsh_web.txt", "snapshot", "netsh", "web", len(NETSH)),
                ("run/iperf3-web-before.log", "snapshot", "iperf3", "web", len(IPERF3)),
                ("run/web.pcap", "capture", "pcap", "web", len(PCAP)),
                ("run/db.pcapng.gz", "capture", "pcapng", "db", len(FILES["run/db.pcapng.gz"])),
                ("run/notes.md", "unknown", None, "notes.md", 9),
                ("run/netsh_db.txt.gz", "snapshot", "netsh", "db", len(FILES["run/netsh_db.txt.gz"])),
                ("run/empty", "unknown", None, "empty", 0),
            ]
        )
        assert {label: sorted(member.name for member in members) for label, members in bundle.hosts.items()} == {
            "db": ["run/db.pcapng.gz", "run/netsh_db.txt.gz"],
            "web": ["run/iperf3-web-before.log", "run/netsh_web.txt", "run/web.pcap"],
        }
        assert list(bundle.hosts) == ["db", "web"]
        assert {member.name for member in bundle.captures} == {"run/web.pcap", "run/db.pcapng.gz"}
        assert len(bundle.snapshots) == 3
        assert [member.number for member in bundle.members] == list(range(7))
        reasons = {member.name: member.reason for member in bundle.members if member.kind == "unknown"}
        assert reasons["run/empty"] == "empty"
        assert (reasons["run/notes.md"] or "").startswith("not a known snapshot format")
        assert bundle.notes == set()


@pytest.mark.parametrize("write", WRITERS)
def test_members_are_read_and_the_private_folder_goes(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, FILES)
    before = sorted(each for each in tmp_path.rglob("*"))
    with Bundle.open(path) as bundle:
        found = {}
        for member in reversed(bundle.members):
            if member.kind == "snapshot":
                file = bundle.snapshot(member)
                assert (file.name, file.format) == (member.name, member.format)
                found[member.name] = len(list(file))
            elif member.kind == "capture":
                assert bundle.path(member).read_bytes() == FILES[member.name]
        assert found == {"run/netsh_web.txt": 1, "run/iperf3-web-before.log": 1, "run/netsh_db.txt.gz": 1}
        unpacked = [bundle.path(member) for member in bundle.members]
        assert unpacked == [bundle.path(member) for member in bundle.members]
        if path.is_file():
            assert len({each.parent for each in unpacked}) == 1
            assert stat.S_IMODE(unpacked[0].parent.stat().st_mode) == 0o700
            assert {each.name for each in unpacked} == {f"{number:05}" for number in range(7)}
    assert sorted(each for each in tmp_path.rglob("*")) == before
    if path.is_file():
        assert not unpacked[0].parent.exists()


@pytest.mark.parametrize("write", [write_zip, write_tar, write_tgz])
def test_unpacked_files_have_the_archives_times(write: Writer, tmp_path: Path) -> None:
    with Bundle.open(write(tmp_path, {"a.txt": NETSH})) as bundle:
        [member] = bundle.members
        assert member.written == datetime(2026, 11, 21, 19, 22, 50, tzinfo=UTC)
        assert bundle.path(member).stat().st_mtime == 1795288970


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["ss_snd.txt", "nstat_snd_before.csv"], ["snd", "snd"]),
        (["ss.txt", "capture.pcap"], ["", ""]),
        (["ss_10.0.0.1.txt", "web-01.example.com_nstat.txt"], ["10.0.0.1", "web-01.example.com"]),
        (["ss-2026-11-21.txt", "snap.jsonl.1", "snap.jsonl.2"], ["", "", ""]),
        (["a/ss.txt", "a/dump_eth0.pcap", "b/ss.txt"], ["a", "a", "b"]),
        (["captures/web.pcap", "snapshots/ss_web.txt"], ["web", "web"]),
        (["x/y/web/ss.txt", "x/y/db/ss.txt"], ["web", "db"]),
        (["web/ss.txt", "web/nstat.txt"], ["web", "web"]),
        (["ss_snd.TXT.gz", "SND.pcap.zst"], ["snd", "SND"]),
        # A ring of tcpdump -C.
        (["packets.pcap0", "packets.pcap1.gz", "web.pcapng12", "ss_snd2.txt"], ["", "", "web", "snd2"]),
    ],
)
def test_whose_a_file_is(names: list[str], labels: list[str], tmp_path: Path) -> None:
    with Bundle.open(write_tar(tmp_path, dict.fromkeys(names, NETSH))) as bundle:
        assert [member.label for member in bundle.members] == labels


def test_zstd_and_lz4_are_captures_by_their_name(tmp_path: Path) -> None:
    files = {
        "a.pcap.zst": b"\x28\xb5\x2f\xfd..",
        "b.pcapng.lz4": b"\x04\x22\x4d\x18..",
        "c.txt.zst": b"\x28\xb5\x2f\xfd",
    }
    with Bundle.open(write_zip(tmp_path, files)) as bundle:
        assert [(member.kind, member.format, member.reason) for member in bundle.members] == [
            ("capture", "zstd", None),
            ("capture", "lz4", None),
            ("unknown", None, "compressed by zstd"),
        ]


@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt", "/etc/evil.txt", "C:\\evil.txt", "..\\evil.txt"])
@pytest.mark.parametrize("write", [write_zip, write_tar])
def test_a_name_that_leads_outside_is_refused(write: Writer, name: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with Bundle.open(write(inside, {name: NETSH, "ok.txt": NETSH})) as bundle:
        evil, good = bundle.members
        assert (evil.kind, evil.reason) == ("unknown", "its name leads outside the bundle")
        with pytest.raises(SnapshotError, match="its name leads outside the bundle"):
            bundle.path(evil)
        assert bundle.path(good).read_bytes() == NETSH
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b", "w") as out:
        for number, kind in enumerate(
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
        ):
            info = tarfile.TarInfo(f"member{number}")
            info.type, info.linkname = kind, "/etc/passwd"
            out.addfile(info)
    with Bundle.open(tmp_path / "b") as bundle:
        assert [member.reason for member in bundle.members] == ["a link, or a special file"] * 5
        for member in bundle.members:
            with pytest.raises(SnapshotError, match="a link"):
                bundle.path(member)


def test_links_and_encrypted_members_of_a_zip_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "b", "w") as out:
        out.writestr(link, "/etc/passwd")
        out.writestr("secret", NETSH)
        out.writestr("bzip2", NETSH, zipfile.ZIP_BZIP2)
    data = bytearray((tmp_path / "b").read_bytes())
    central = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    data[central + 8] |= 1  # The second member's flags in the central directory.
    (tmp_path / "b").write_bytes(data)
    with Bundle.open(tmp_path / "b") as bundle:
        assert [member.reason for member in bundle.members] == [
            "a link, or a special file",
            "encrypted",
            "compressed by an unsupported method",
        ]


def test_links_and_pipes_of_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(NETSH)
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with Bundle.open(tmp_path) as bundle:
        assert [(member.name, member.reason) for member in bundle.members] == [
            ("a.txt", None),
            ("link.txt", "a link, or a special file"),
            ("loop", "a link, or a special file"),
            ("pipe", "a link, or a special file"),
        ]


@pytest.mark.parametrize("write", WRITERS)
def test_too_many_members(write: Writer, tmp_path: Path) -> None:
    files = {f"{number}.txt": b"x" for number in range(6)}
    path = write(tmp_path, files)
    with pytest.raises(SnapshotError, match=r"more than 5 members$"):
        Bundle.open(path, max_members=5)
    with Bundle.open(path, max_members=6) as bundle:
        assert len(bundle.members) == 6


@pytest.mark.parametrize("write", [write_zip, write_tar, write_tgz])
def test_too_many_bytes(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, {"a": b"x" * 3000, "b": b"y" * 3000})
    with pytest.raises(SnapshotError, match=r"unpacks to more than 5,999 bytes$"):
        Bundle.open(path, max_bytes=5999)
    with Bundle.open(path, max_bytes=6000) as bundle:
        assert [bundle.path(member).stat().st_size for member in bundle.members] == [3000, 3000]


def test_a_folder_may_be_as_large_as_it_is(tmp_path: Path) -> None:
    with Bundle.open(write_folder(tmp_path, {"a": b"x" * 3000}), max_bytes=10) as bundle:
        assert bundle.path(bundle.members[0]).stat().st_size == 3000


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_a_bomb_is_refused_before_it_goes_off(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, {"zeros": bytes(70 << 20), "more": NETSH})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(SnapshotError, match=r"unpacks to more than \d"):
        Bundle.open(path)


@pytest.mark.parametrize("kind", ["cut", "nearly whole", "damaged"])
def test_a_tar_with_half_a_header(tmp_path: Path, kind: str) -> None:
    """Python's tarfile takes it for the end of the archive."""
    whole = tar_with({"a.txt": NETSH, "b.txt": NETSH})
    second = whole.index(b"b.txt")
    left = {
        "cut": whole[: second + 1],
        "nearly whole": whole[: second + 511],
        "damaged": whole[:second] + b"x" + whole[second + 1 :],
    }
    (tmp_path / "b").write_bytes(left[kind])
    with Bundle.open(tmp_path / "b") as bundle:
        assert [member.name for member in bundle.members] == ["a.txt"]
        assert any("truncated or damaged" in note for note in bundle.notes)


def test_a_tar_header_that_would_fill_the_memory(tmp_path: Path) -> None:
    """A pax header is read as a whole; this one claims 4 GiB."""
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 4 << 30
    (tmp_path / "b").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(SnapshotError):
        Bundle.open(tmp_path / "b")


def test_a_sparse_member_is_refused(tmp_path: Path) -> None:
    """A few bytes that represent 8 GiB of zeros."""
    info = tarfile.TarInfo("sparse")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"00000000000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (tmp_path / "b").write_bytes(bytes(header) + bytes(1024))
    with Bundle.open(tmp_path / "b") as bundle:
        assert [member.reason for member in bundle.members] == ["a link, or a special file"]


def test_an_archive_that_is_cut_lists_what_it_can(tmp_path: Path) -> None:
    data = tar_with({"a.txt": NETSH, "b.txt": os.urandom(100_000), "c.txt": NETSH})
    (tmp_path / "b").write_bytes(gzip.compress(data)[:50_000])
    with Bundle.open(tmp_path / "b") as bundle:
        assert [member.name for member in bundle.members][:1] == ["a.txt"]
        assert "c.txt" not in [member.name for member in bundle.members]
        assert bundle.notes == {"the archive is truncated or damaged; only the part before the damage was read"}


def test_a_member_with_a_wrong_checksum(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "b", "w") as out:
        out.writestr("bad.txt", NETSH)
        out.writestr("good.txt", NETSH)
    data = (tmp_path / "b").read_bytes()
    (tmp_path / "b").write_bytes(data.replace(NETSH, NETSH.replace(b"normal", b"NORMAL"), 1))
    with Bundle.open(tmp_path / "b") as bundle:
        bad, good = bundle.members
        assert (bad.kind, good.kind) == ("unknown", "snapshot")
        assert (bad.reason or "").startswith("cannot be read: Bad CRC-32")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a bundle: expected a folder, .zip, .tar or .tar.gz"),
        (b"Dear all\n", "not a bundle: expected a folder, .zip, .tar or .tar.gz"),
        (PCAP, "not a bundle: expected a folder, .zip, .tar or .tar.gz"),
        (gzip.compress(PCAP), "not a bundle: expected a folder, .zip, .tar or .tar.gz"),
        (b"PK\x03\x04" + bytes(40), "damaged: File is not a zip file"),
        (b"\x28\xb5\x2f\xfd" + bytes(40), "compressed by zstd; only gzip is read"),
    ],
)
def test_rejected_bundles(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(data)
    with pytest.raises(SnapshotError) as error:
        Bundle.open(tmp_path / "b")
    assert str(error.value) == f"{tmp_path / 'b'}: {message}"


def test_an_archive_that_is_cut_in_its_first_header(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(gzip.compress(os.urandom(5000))[:100])
    with pytest.raises(SnapshotError, match=": damaged: "):
        Bundle.open(tmp_path / "b")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Bundle.open(tmp_path / "none")


def test_names_of_endless_depth_and_endings(tmp_path: Path) -> None:
    files = {"a/" * 30_000 + "x.txt": NETSH, "web" + ".gz" * 20_000: NETSH, "a/" * 30_000 + "y.txt": NETSH}
    with Bundle.open(write_zip(tmp_path, files)) as bundle:
        assert [member.kind for member in bundle.members] == ["snapshot"] * 3


def test_a_member_without_a_name(tmp_path: Path) -> None:
    data = write_zip(tmp_path, {"ab": NETSH}).read_bytes()
    (tmp_path / "b").write_bytes(data.replace(b"ab", b"\0b"))
    with Bundle.open(tmp_path / "b") as bundle:
        assert [(member.kind, member.reason) for member in bundle.members] == [
            ("unknown", "its name leads outside the bundle")
        ]


def test_names_that_cannot_be_printed(tmp_path: Path) -> None:
    with Bundle.open(write_tar(tmp_path, {"a\nb\x1b[31m.txt": NETSH})) as bundle:
        assert [member.name for member in bundle.members] == ["a?b?[31m.txt"]


def pcap(number: int) -> bytes:
    """A capture with a distinct link type."""
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, number)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("names", "wanted", "expected"),
    [
        # Files of `tcpwin snap`: the highest number is the oldest.
        (["x.pcap", "x.pcap.1", "x.pcap.2", "x.pcap.10"], None, ["x.pcap.10", "x.pcap.2", "x.pcap.1", "x.pcap"]),
        # Files of `tcpdump -C`. They have the same time, so only the number gives their order.
        (["x.pcap", "x.pcap1", "x.pcap2"], None, ["x.pcap", "x.pcap1", "x.pcap2"]),
        (["x.pcap00", "x.pcap01", "x.pcap02"], None, ["x.pcap00", "x.pcap01", "x.pcap02"]),
        (["x.CAP.1.gz", "x.CAP.2.gz", "x.CAP"], None, ["x.CAP.2.gz", "x.CAP.1.gz", "x.CAP"]),
        (["x.pcap.1", "x.pcap.2"], "x.pcap", ["x.pcap.2", "x.pcap.1"]),
        (["x.pcap", "x.pcap.1"], "x.pcap.1", ["x.pcap.1"]),
        (["a/x.pcap", "a/x.pcap.1", "b/x.pcap"], "a/x.pcap", ["a/x.pcap.1", "a/x.pcap"]),
        (["a/x.pcap", "a/x.pcap.1", "b/x.pcap"], "b/x.pcap", ["b/x.pcap"]),
        (["a/x.pcap", "a/x.pcap.1", "b/y.pcap"], "y.pcap", ["b/y.pcap"]),
    ],
)
def test_the_files_of_a_ring_are_one_capture(
    write: Writer, names: list[str], wanted: str | None, expected: list[str], tmp_path: Path
) -> None:
    """They are read oldest first, and remain readable after the bundle is closed."""
    files = {name: pcap(number) for number, name in enumerate(names)}
    path = write(tmp_path, files)
    for each in tmp_path.rglob("*"):
        os.utime(each, (1795288970, 1795288970))
    with Bundle.open(path) as bundle:
        source = open_capture(bundle, wanted)
    opened = source.open()
    found = [opened.read(1000)] if hasattr(opened, "read") else [Path(each).read_bytes() for each in opened]
    assert found == [files[name] for name in expected]


def test_a_ring_of_tcpdump_that_began_again_is_ordered_by_time(tmp_path: Path) -> None:
    for name, seconds in (("x.pcap0", 30), ("x.pcap1", 10), ("x.pcap2", 20)):
        (tmp_path / name).write_bytes(PCAP)
        os.utime(tmp_path / name, (seconds, seconds))
    with Bundle.open(tmp_path) as bundle:
        source = open_capture(bundle)
    assert source.open() == [str(tmp_path / name) for name in ("x.pcap1", "x.pcap2", "x.pcap0")]
    assert source.name == f"{tmp_path}: x.pcap (3 files)"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        # Hosts, not a ring: there is no capture extension before the number.
        (["snd1", "snd2"], "2 captures; choose one (--capture NAME): snd1, snd2"),
        (["10.0.0.1", "10.0.0.2"], "2 captures; choose one (--capture NAME): 10.0.0.1, 10.0.0.2"),
        (["web1.pcap", "web2.pcap"], "2 captures; choose one (--capture NAME): web1.pcap, web2.pcap"),
        (["x.pcap", "x.pcap.gz"], "2 captures; choose one (--capture NAME): x.pcap, x.pcap.gz"),
        (["a/x.pcap", "a/x.pcap.1", "b/x.pcap"], "2 captures; choose one (--capture NAME): a/x.pcap, b/x.pcap"),
    ],
)
def test_captures_that_are_not_a_ring_need_a_choice(names: list[str], said: str, tmp_path: Path) -> None:
    write_folder(tmp_path, dict.fromkeys(names, PCAP))
    with Bundle.open(tmp_path) as bundle, pytest.raises(SnapshotError) as caught:
        open_capture(bundle)
    assert caught.value.message == said


@pytest.mark.parametrize("write", [write_zip, write_tgz])
def test_the_files_of_a_ring_go_with_their_source(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, {"x.pcap": PCAP, "x.pcap.1": PCAP})
    private = tmp_path / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    with Bundle.open(path) as bundle:
        source = open_capture(bundle)
    assert len(list(private.iterdir())) == 1
    del source
    gc.collect()
    assert list(private.iterdir()) == []


def open_when_read(fifo: Path, process: subprocess.Popen[bytes]) -> int:
    """Return the writing end of a named pipe once a process has opened the reading end (fifo(7))."""

    def attempt() -> int | None:
        assert process.poll() is None
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise

    return until(attempt) or 0


def test_a_process_that_is_terminated_leaves_no_private_folder(tmp_path: Path) -> None:
    """A reader waits on a FIFO without a writer, next to the unpacked capture."""
    path = write_zip(tmp_path, {"x.pcap": PCAP, "x.pcap.1": PCAP})
    path = path.rename(tmp_path / "b.zip")
    private, fifo = tmp_path / "private", tmp_path / "ss.txt"
    private.mkdir()
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [TCPWIN, "analyze", path, "--with", fifo],
        env={**os.environ, "TMPDIR": str(private)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        descriptor = open_when_read(fifo, process)
        assert list(private.iterdir()) != []
        # Python checks for signals before a read and when one is interrupted; a signal just in between waits for the
        # read.
        until(lambda: is_asleep(process.pid))
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=HANG_S)
        os.close(descriptor)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (143, (b"", b""))
    assert list(private.iterdir()) == []


def test_a_run_of_the_lab() -> None:
    with Bundle.open(LAB) as bundle:
        found = {
            label: {(member.name, member.kind, member.format) for member in members}
            for label, members in bundle.hosts.items()
        }
        assert found == {
            end: {
                (f"{end}.pcap.gz", "capture", "pcap"),
                (f"ss_{end}.txt", "snapshot", "ss"),
                (f"nstat_{end}.csv", "snapshot", "counter_csv"),
                (f"nstat_{end}_before.txt", "snapshot", "nstat"),
                (f"nstat_{end}_after.txt", "snapshot", "nstat"),
                (f"sockstat_{end}.txt", "snapshot", "sockstat"),
            }
            for end in ("snd", "rcv")
        }
        assert {member.name for member in bundle.members if member.kind == "unknown"} == {"meta.json", "tc.txt"}
        for member in bundle.snapshots:
            assert isinstance(bundle.snapshot(member), SnapshotFile)


@pytest.mark.parametrize("write", [write_zip, write_tar, write_tgz])
@given(position=st.integers(0, 600), value=st.integers(0, 255), cut=st.integers(0, 3000))
def test_damage_anywhere_is_listed_or_one_error(
    write: Writer, tmp_path_factory: pytest.TempPathFactory, position: int, value: int, cut: int
) -> None:
    path = write(tmp_path_factory.mktemp("b"), {"a_web.txt": NETSH, "b": PCAP})
    data = bytearray(path.read_bytes())
    data[position % len(data)] = value
    path.write_bytes(data[: max(1, len(data) - cut)])
    try:
        bundle = Bundle.open(path)
    except SnapshotError:
        return
    with bundle:
        for member in bundle.members:
            if member.kind != "unknown":
                try:
                    bundle.path(member)
                except SnapshotError:
                    continue
