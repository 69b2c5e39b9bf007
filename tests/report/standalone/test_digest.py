"""A report is checked against its capture: by the digests of its files and of its results."""

import gzip
import re
from pathlib import Path

import pytest
from cli.command import CAPTURES, refused, tcpwin

SLOW, OTHER = CAPTURES / "lab/slow-reader.pcap.gz", CAPTURES / "lab/loss-1-percent.pcap.gz"


def verified(capture: Path, report: Path) -> tuple[int, str]:
    done = tcpwin("report", capture, "--verify", report)
    return done.returncode, done.stdout.decode().strip().rpartition(": ")[2]


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_a_report_matches_its_capture_and_no_other(tmp_path: Path, form: str) -> None:
    report = tmp_path / f"report.{form}"
    assert tcpwin("report", SLOW, "-o", report).returncode == 0
    assert verified(SLOW, report) == (0, "its capture and results match")
    assert verified(OTHER, report) == (1, "the report is of another capture")
    unpacked = tmp_path / "same.pcap"
    unpacked.write_bytes(gzip.decompress(SLOW.read_bytes()))
    assert verified(unpacked, report) == (1, "the report is of another capture")
    text = report.read_text()
    found = re.search(r"(?i)results[_ ]sha-?256\W+([0-9a-f]{64})", text)
    assert found is not None
    report.write_text(text.replace(found[1], "0" * 64))
    assert verified(SLOW, report) == (1, "the report has other results")
    report.write_text("nothing")
    assert "no digest" in refused("report", SLOW, "--verify", report)


def test_a_report_with_replaced_addresses_has_the_results_of_its_capture(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert tcpwin("report", SLOW, "--anonymize", "--shift-times", "-o", report).returncode == 0
    assert verified(SLOW, report) == (0, "its capture and results match")
    assert verified(OTHER, report) == (1, "the report has other results")
