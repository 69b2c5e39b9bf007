"""Bundles: the same files give the same bytes, whenever and wherever they are written."""

from __future__ import annotations

import errno
import gzip
import os
import zipfile
from pathlib import Path

import pytest

from tcpwin.errors import OutputError
from tcpwin.lab.bundle import read_bundle, write_bundle, write_host_cost


def fill(folder: Path) -> Path:
    folder.mkdir()
    (folder / "ss_sender.txt").write_text("State\n")
    (folder / "sender.pcap").write_bytes(b"packets" * 1000)
    (folder / "meta.json").write_text("{}\n")
    (folder / "host-hist_receiver.txt").write_text("@host_cpu_ns:\n")
    (folder / "kernel-id").mkdir()
    return folder


def test_bundles_of_the_same_files_are_the_same(tmp_path: Path) -> None:
    first, second = fill(tmp_path / "a"), fill(tmp_path / "b")
    os.utime(second / "meta.json", (0, 0))
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    bundles = [tmp_path / "one" / "run.zip", tmp_path / "two" / "run.zip"]
    for folder, bundle in zip((first, second), bundles, strict=True):
        write_bundle(folder, 'title = "A"\n', bundle)
    assert bundles[0].read_bytes() == bundles[1].read_bytes()
    with zipfile.ZipFile(bundles[0]) as members:
        names = ["scenario.toml", "meta.json", "sender.pcap.gz", "ss_sender.txt"]
        assert members.namelist() == [f"run/{name}" for name in names]
        assert gzip.decompress(members.read("run/sender.pcap.gz")) == b"packets" * 1000
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["run.zip"]


def test_host_dependent_values_are_stored_separately(tmp_path: Path) -> None:
    write_host_cost(fill(tmp_path / "a"), tmp_path / "run.host.txt")
    assert (tmp_path / "run.host.txt").read_text() == "@host_cpu_ns:\n"


def test_a_bundle_knows_its_scenario(tmp_path: Path) -> None:
    bundle = tmp_path / "run.zip"
    assert read_bundle(bundle) is None
    bundle.write_bytes(b"PK\x03\x04 cut")
    assert read_bundle(bundle) is None
    write_bundle(fill(tmp_path / "a"), "text", bundle)
    assert read_bundle(bundle) == ("text", {})


@pytest.mark.parametrize("member", ["scenario.toml", "meta.json"])
def test_a_damaged_bundle_is_ignored(member: str, tmp_path: Path) -> None:
    """A run is repeated if a full disk or a broken transfer truncated its bundle."""
    bundle = tmp_path / "run.zip"
    write_bundle(fill(tmp_path / "a"), 'title = "A"\n' * 50, bundle)
    with zipfile.ZipFile(bundle) as members:
        entry = members.getinfo(f"run/{member}")
    data = bytearray(bundle.read_bytes())
    data[entry.header_offset + 30 + len(entry.filename)] = 0xFF
    bundle.write_bytes(data)
    assert read_bundle(bundle) is None


def test_what_could_not_be_written_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "run.zip"
    folder = fill(tmp_path / "a")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OutputError, match=f"^{bundle}: No space left"):
        write_bundle(folder, "text", bundle)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
