"""Every capture in captures/ matches its TOML: origin, bytes, content, and claims.

Keys: `title file origin licence sha256`; `format compression link_types packets warnings` (kind and byte offset, in the
uncompressed stream) or, for an unreadable file, `error` (part of the message); `exit_code` of `tcpwin analyze`;
`claims`, Python expressions over the analysis as in the ladders, with `rows` (of the per-segment table), `events` (all
names in all rows) and `from_sender` (the first connection's direction with more payload).
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from pathlib import Path
from typing import Any

import forked
import ladder
import pytest
from cases import all_cases
from craft import broken
from live import HANG_S
from reference import LAB_RUNS

import tcpwin

CAPTURES = Path(__file__).parents[2] / "captures"
FOLDERS = ("broken", "lab", "wild")
TRUTHS = sorted(path for folder in FOLDERS for path in (CAPTURES / folder).glob("*.toml"))
KEYS = {"title", "file", "origin", "licence", "sha256"}
FILE_KEYS = {"format", "compression", "link_types", "packets", "warnings"}
OPTIONAL_KEYS = {"exit_code", "claims"}
MEBIBYTE = 1 << 20


def read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf8"))


@all_cases("path", TRUTHS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_capture_matches_its_toml(path: Path) -> None:
    truth = read(path)
    assert truth.keys() - OPTIONAL_KEYS in (KEYS | FILE_KEYS, KEYS | {"error"})
    capture = path.parent / truth["file"]
    assert hashlib.sha256(capture.read_bytes()).hexdigest() == truth["sha256"]
    if "error" in truth:
        with pytest.raises(tcpwin.CaptureError) as raised:
            tcpwin.analyze(capture)
        assert truth["error"] in str(raised.value)
        assert capture.name in str(raised.value)
    else:
        check(tcpwin.analyze(capture), truth)


def check(analysis: tcpwin.Analysis, truth: dict[str, Any]) -> None:
    [file] = analysis.capture.files
    assert (file.format, list(file.compression)) == (truth["format"], truth["compression"])
    assert sorted({interface.link_type for interface in file.interfaces}) == truth["link_types"]
    assert analysis.capture.packets == truth["packets"]
    warnings = [{"kind": warning.kind, "byte_offset": warning.byte_offset} for warning in analysis.capture.warnings]
    assert warnings == truth["warnings"]
    rows = list(analysis.segments().rows())
    events = [name for row in rows for name in (row["events"] or "").split("|") if name]
    names = ladder.names_of(analysis, rows=rows, events=events)
    if len(analysis.connections):
        first = analysis.connections[0]
        names["from_sender"] = max(first.a_to_b, first.b_to_a, key=lambda direction: direction.payload_bytes)
    problems = [problem for claim in truth.get("claims", []) if (problem := ladder.evaluate(claim, names))]
    assert not problems, "\n".join(problems)


@all_cases("path", [path for path in TRUTHS if "exit_code" in read(path)], ids=lambda path: path.stem, of=3)
def test_damage_ends_in_an_exit_code_and_no_traceback(path: Path) -> None:
    truth = read(path)
    command = [Path(sys.executable).with_name("tcpwin"), "analyze", path.parent / truth["file"]]
    done = forked.run(command, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == truth["exit_code"], done.stderr
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    if truth["exit_code"]:
        assert done.stderr.count("\n") == 1


def test_every_capture_has_its_truth_and_the_folder_is_small() -> None:
    files = [path for folder in FOLDERS for path in (CAPTURES / folder).iterdir()]
    listed = {path.parent / read(path)["file"] for path in TRUTHS}
    assert {path for path in files if path.suffix != ".toml"} == listed
    assert len(listed) == len(TRUTHS)
    assert {path.parent.name for path in TRUTHS} == set(FOLDERS)
    assert sum(path.stat().st_size for path in files) < 3 * MEBIBYTE


def test_the_labs_runs_are_as_they_were_made() -> None:
    """Tests use these runs as truth: no file may change, disappear or be added unnoticed."""
    listed = dict(line.split("  ")[::-1] for line in (LAB_RUNS / "SHA256SUMS").read_text(encoding="ascii").splitlines())
    files = [path for path in LAB_RUNS.glob("*/*") if path.is_file()]
    found = {f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == listed
    assert sum(path.stat().st_size for path in files if path.suffix == ".gz") < 8.5 * MEBIBYTE


def test_broken_captures_are_those_that_the_script_builds() -> None:
    built = broken.build()
    stored = {path.name: path.read_bytes() for path in (CAPTURES / "broken").iterdir() if path.suffix != ".toml"}
    assert built == stored
    assert max(map(len, built.values())) < 2048
