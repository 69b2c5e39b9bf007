"""A capture of headers gives the same connections as the original, and contains nothing else."""

import hashlib
import io
import json
import re
from pathlib import Path

import pytest
from reference import ROOT
from spread import some_by_day

import tcpwin
from tcpwin.errors import CaptureError
from tcpwin.sources import HeadersSource, write_headers

CAPTURES = sorted(
    path
    for folder in ("lab", "wild", "broken")
    for path in (ROOT / "captures" / folder).iterdir()
    if path.suffix != ".toml"
)


def directions_of(analysis: tcpwin.Analysis) -> dict[str, object]:
    document = json.loads(analysis.to_json())
    for file in document["capture"]["files"]:
        del file["file"]
        for warning in file["warnings"]:
            del warning["file"]
    return {"capture": document["capture"], "connections": document["connections"]}


@pytest.mark.parametrize("path", some_by_day(CAPTURES, first=2), ids=lambda path: path.name)
def test_every_number_is_that_of_the_whole_capture(path: Path, tmp_path: Path) -> None:
    try:
        whole = tcpwin.analyze(path)
    except CaptureError as error:
        reason = re.escape(error.message)
        with path.open("rb") as file, pytest.raises(CaptureError, match=reason):
            write_headers(file, tmp_path / "headers", name=path.name)
        return
    with path.open("rb") as file:
        headers = write_headers(file, tmp_path / "headers", name=path.name)
    cut = tcpwin.analyze(HeadersSource([tmp_path / "headers"], [headers.facts], name=path.name))
    assert directions_of(cut) == directions_of(whole)
    ids = range(min(len(whole), 5))
    assert [cut.connections[id].events for id in ids] == [whole.connections[id].events for id in ids]
    assert headers.packets == whole.capture.packets


def test_packets_can_be_stored_whole(tmp_path: Path) -> None:
    with (ROOT / "captures" / "wild" / "keep-alive.pcap").open("rb") as file:
        data = file.read()
    headers = write_headers(io.BytesIO(data), tmp_path / "whole", whole=True)
    assert headers.packets_cut == 0
    assert headers.sha256 == hashlib.sha256((tmp_path / "whole").read_bytes()).hexdigest()
    assert (tmp_path / "whole").stat().st_size > len(data)


def test_no_more_is_read_than_is_allowed(tmp_path: Path) -> None:
    data = (ROOT / "captures" / "lab" / "slow-reader.pcap.gz").read_bytes()
    headers = write_headers(io.BytesIO(data), tmp_path / "headers", max_bytes=1000)
    assert [warning["kind"] for warning in headers.facts["warnings"]] == ["read_failed"]
    assert "more than the 1000 bytes allowed" in headers.facts["warnings"][0]["message"]


def test_what_goes_wrong_is_raised(tmp_path: Path) -> None:
    out = tmp_path / "there"
    out.write_bytes(b"")
    data = (ROOT / "captures" / "wild" / "keep-alive.pcap").read_bytes()
    with pytest.raises(FileExistsError):
        write_headers(io.BytesIO(data), out)

    def stop(_: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        write_headers(io.BytesIO(data), tmp_path / "new", progress=stop)
