"""A zip with too many entries is refused before an object is made of each."""

import io
import struct
import zipfile
from pathlib import Path

import pytest

from tcpwin.errors import SnapshotError
from tcpwin.hosts import Bundle
from tcpwin.hosts.zip_directory import zip_holds_more

ENTRY = struct.pack("<4s4B4HIII5H2I", b"PK\1\2", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"


def written(path: Path, count: int, *, stated: int, zip64: bool = False, before: bytes = b"PK\3\4") -> Path:
    """A zip of a directory only, which states so many entries."""
    directory = ENTRY * count
    if zip64:
        end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, stated, stated, len(directory), len(before))
        end += struct.pack("<4sIQI", b"PK\6\7", 0, len(before) + len(directory), 1)
        end += struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, stated, stated, len(directory), len(before), 0)
    path.write_bytes(before + directory + end)
    return path


@pytest.mark.parametrize("zip64", [False, True])
def test_entries_are_counted_without_belief_in_the_stated_number(tmp_path: Path, zip64: bool) -> None:
    path = tmp_path / "many.zip"
    for count, stated in ((11, 11), (11, 3), (3, 11)):
        assert zip_holds_more(written(path, count, stated=stated, zip64=zip64), 10), (count, stated)
    assert not zip_holds_more(written(path, 10, stated=10, zip64=zip64), 10)
    with pytest.raises(SnapshotError, match="more than 10,000 members"):
        Bundle.open(written(path, 10_001, stated=1, zip64=zip64))


def test_zips_with_comments_and_damage(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(5):
            archive.writestr(f"{number}.txt", "x")
        archive.comment = b"c" * 60_000
    path = tmp_path / "a.zip"
    path.write_bytes(b"before" + packed.getvalue())
    assert zip_holds_more(path, 4)
    assert not zip_holds_more(path, 5)
    for damaged in (b"", b"PK\3\4", packed.getvalue()[:-30], b"PK\5\6" + b"\xff" * 18):
        path.write_bytes(damaged)
        assert not zip_holds_more(path, 100_000)
