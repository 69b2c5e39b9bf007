"""Bundles: the same files give the same bytes, whenever and wherever they were written."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

from tcpwin.lab._bundle import bundled_scenario, write_bundle, write_host_cost


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


def test_what_depends_on_the_host_goes_beside(tmp_path: Path) -> None:
    write_host_cost(fill(tmp_path / "a"), tmp_path / "run.host.txt")
    assert (tmp_path / "run.host.txt").read_text() == "@host_cpu_ns:\n"


def test_a_bundle_knows_its_scenario(tmp_path: Path) -> None:
    bundle = tmp_path / "run.zip"
    assert bundled_scenario(bundle) is None
    bundle.write_bytes(b"PK\x03\x04 cut")
    assert bundled_scenario(bundle) is None
    write_bundle(fill(tmp_path / "a"), "text", bundle)
    assert bundled_scenario(bundle) == "text"
