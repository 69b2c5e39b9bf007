"""A report is checked against its capture: by the digests of its files and of its results."""

import gzip
import hashlib
import re
import zipfile
from pathlib import Path

import pytest
from cli.command import CAPTURES, refused, tcpwin

from tcpwin import analyze
from tcpwin.render.report import seal_again

SLOW, OTHER = CAPTURES / "lab/slow-reader.pcap.gz", CAPTURES / "lab/loss-1-percent.pcap.gz"


def verified(capture: Path, report: Path) -> tuple[int, str]:
    done = tcpwin("report", capture, "--verify", report)
    return done.returncode, done.stdout.decode().strip().rpartition(": ")[2]


@pytest.mark.parametrize("form", ["html", "md", "json", pytest.param("pdf", marks=pytest.mark.nightly)])
def test_a_report_matches_its_capture_and_no_other(tmp_path: Path, form: str) -> None:
    report = tmp_path / f"report.{form}"
    assert tcpwin("report", SLOW, "-o", report).returncode == 0
    assert verified(SLOW, report) == (0, "its capture and results match")
    assert verified(OTHER, report) == (1, "the report is of another capture")
    unpacked = tmp_path / "same.pcap"
    unpacked.write_bytes(gzip.decompress(SLOW.read_bytes()))
    assert verified(unpacked, report) == (1, "the report is of another capture")
    text = report.read_bytes()
    found = re.search(rb"(?i)results[_ ]sha-?256\W+([0-9a-f]{64})", text)
    assert found is not None
    middle = len(text) // 2
    for changed in (text[:middle] + b"x" + text[middle + 1 :], text + b"And more.", text[:-90]):
        report.write_bytes(changed)
        assert verified(SLOW, report) == (1, "the report was changed after it was written")
    report.write_bytes(text.replace(found[1], b"0" * 64))
    assert verified(SLOW, report) == (1, "the report has other results")
    report.write_text("nothing")
    assert "no digest" in refused("report", SLOW, "--verify", report)


def test_a_report_that_is_changed_on_purpose_gets_a_new_digest(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    changed = analyze(SLOW).report().markdown().replace("slow", "fast")
    report.write_text(seal_again(changed))
    assert verified(SLOW, report)[0] == 0
    report.write_text(changed)
    assert verified(SLOW, report)[0] == 1
    assert seal_again("no report") == "no report"


def test_a_report_with_replaced_addresses_has_the_results_of_its_capture(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert tcpwin("report", SLOW, "--anonymize", "--shift-times", "-o", report).returncode == 0
    assert verified(SLOW, report) == (0, "its capture and results match")
    assert verified(OTHER, report) == (1, "the report has other results")


def test_each_capture_of_a_bundle_has_a_digest(tmp_path: Path) -> None:
    """A ring is one capture of several files; one file may differ."""
    whole = gzip.decompress(SLOW.read_bytes())
    ends = [24]
    while len(ends) < 200:
        ends.append(ends[-1] + 16 + int.from_bytes(whole[ends[-1] + 8 : ends[-1] + 12], "little"))
    parts = [whole[: ends[100]], whole[:24] + whole[ends[100] : ends[199]]]
    digests = [hashlib.sha256(part).hexdigest() for part in parts]

    def bundle(name: str, members: list[bytes]) -> Path:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for number, data in enumerate(members):
                archive.writestr(f"host/a.pcap{number}", data)
        return tmp_path / name

    ring, report = bundle("ring.zip", parts), tmp_path / "report.md"
    assert tcpwin("report", ring, "-o", report).returncode == 0
    assert f"Capture SHA-256: {' '.join(digests)}. " in report.read_text()
    assert verified(ring, report) == (0, "its capture and results match")
    # The same packets with another first file.
    other = bundle("other.zip", [parts[0] + b"\0", parts[1]])
    assert verified(other, report)[1] == "the report is of another capture"
    single = bundle("single.zip", [parts[0]])
    assert tcpwin("report", single, "-o", report).returncode == 0
    assert f"Capture SHA-256: {digests[0]}. " in report.read_text()
