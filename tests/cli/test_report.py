"""`tcpwin report` as a process."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli.command import KEEP_ALIVE, MANY_SHORT, SLOW_READER, TEXT, refused, tcpwin


@pytest.mark.parametrize(("name", "beginning"), [("r.html", "<!DOCTYPE html>"), ("r.md", "# "), ("r.json", "{")])
def test_a_report_is_written_in_the_form_of_its_name(tmp_path: Path, name: str, beginning: str) -> None:
    out = tmp_path / name
    done = tcpwin("report", SLOW_READER, "-o", out)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert out.read_text().startswith(beginning)


def test_text_forms_go_to_standard_output() -> None:
    assert json.loads(tcpwin("report", SLOW_READER, "--format", "json").stdout)["schema"] == "tcpwin/report/2"
    assert tcpwin("report", SLOW_READER, "--format", "md").stdout.startswith(b"# ")


def test_a_hyphen_is_standard_output(tmp_path: Path) -> None:
    done = tcpwin("report", SLOW_READER, "--format", "md", "-o", "-", cwd=tmp_path)
    assert done.stdout.startswith(b"# ")
    assert tcpwin("report", SLOW_READER, "-o", "-", cwd=tmp_path).stdout.startswith(b"<!DOCTYPE html>")
    assert "name a file with -o OUT" in refused("report", SLOW_READER, "--format", "pdf", "-o", "-", status=2)
    assert tcpwin("packets", SLOW_READER, "-o", "-", cwd=tmp_path).stdout.startswith(b"frame,")
    assert list(tmp_path.iterdir()) == []


def test_a_capture_on_standard_input_is_read_again_for_its_connections() -> None:
    done = tcpwin("report", "-", "--format", "md", stdin=None, input=SLOW_READER.read_bytes())
    assert b"# standard input" in done.stdout
    assert b"where the server's time went" in done.stdout


def test_a_twin_needs_one_capture_with_its_names(tmp_path: Path) -> None:
    twin = ("--twin", tmp_path / "runs", "-o", tmp_path / "r.html")
    assert "does not go with --anonymize" in refused("report", SLOW_READER, *twin, "--anonymize", status=2)
    assert "are for one capture" in refused("report", SLOW_READER, MANY_SHORT, *twin, status=2)


def test_a_connection_with_a_run_like_it_gets_no_twin(tmp_path: Path) -> None:
    """So none is run, whether the lab's kernel is built or not."""
    out = tmp_path / "r.json"
    assert tcpwin("report", SLOW_READER, "--twin", tmp_path / "runs", "-o", out).returncode == 0
    assert "twins" not in json.loads(out.read_text(encoding="utf8"))
    assert not (tmp_path / "runs").exists()


def test_impossible_requests_are_refused(tmp_path: Path) -> None:
    assert "name a file with -o OUT" in refused("report", SLOW_READER, "--format", "pdf", status=2)
    assert "is also an input file" in refused("report", SLOW_READER, "-o", SLOW_READER, "--format", "md", status=2)
    said = refused("report", SLOW_READER, "-o", tmp_path / "r.foo", status=2)
    assert "has no known extension: use one of html, htm, pdf, json, md, markdown" in said
    assert "--format" in said
    assert not (tmp_path / "r.foo").exists()
    assert tcpwin("report", SLOW_READER, "-o", tmp_path / "r.foo", "--format", "md").returncode == 0
    assert "--limit" in refused("report", SLOW_READER, "--limit", "-1", status=2)
    refused("report", TEXT, "-o", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()
    refused("report", SLOW_READER, "-o", tmp_path / "no" / "r.html")


def test_without_a_browser_pdf_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    environment = {**os.environ, "BROWSER_PATH": "no-such-browser"}
    said = refused("report", TEXT, "-o", tmp_path / "r.pdf", env=environment)
    assert "printing a PDF needs Chromium or Chrome" in said


def test_connections_are_chosen(tmp_path: Path) -> None:
    out = tmp_path / "out.md"
    assert tcpwin("report", MANY_SHORT, "--connection", 7, "--connection", 5, "-o", out).returncode == 0
    told = [line for line in out.read_text(encoding="utf8").splitlines() if line.startswith("## Connection ")]
    assert [line.split()[2].rstrip(":,") for line in told] == ["7", "5"]
    assert "no connection 999" in refused("report", MANY_SHORT, "--connection", 999, "-o", out)
    assert "--connection is for one capture" in refused(
        "report", MANY_SHORT, KEEP_ALIVE, "--connection", 0, "-o", tmp_path, status=2
    )
