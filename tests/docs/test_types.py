"""The Python of every page passes strict pyright, and at night strict mypy; a misspelt name does not."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from live import HANG_S

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "tcpwin" / "docs"
PAGES = {
    path.relative_to(DOCS).with_suffix("").as_posix().replace("/", "_").replace("-", "_"): "".join(blocks)
    for path in sorted(DOCS.rglob("*.md"))
    if (blocks := re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf8"), re.DOTALL))
}
GIVEN = """\
import dpkt
import polars
import scapy.all

import tcpwin

f = open("a.pcap", "rb")
start_ns, end_ns = 0, 1
analysis = tcpwin.analyze("a.pcap")
connection = analysis.connections[0]
"""
"""Names that a page takes from a previous page, or from its reader."""
WRONG = """\
connection.series("flihgt")
connection.percentiles("rtt")
connection.series("flight", direction="a_to_c")
connection.figure("window", direction="a->b")
connection.figure("windwo")
analysis.figure("window")
connection.a_to_b.flihgt_max_bytes
"""
SETTINGS = {
    "typeCheckingMode": "strict",
    "pythonVersion": "3.11",
    # Pages show names without using them, and use packages without types.
    "reportUnusedImport": False,
    "reportDuplicateImport": False,
    "reportUnusedExpression": False,
    "reportMissingTypeStubs": False,
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program per page, and one with errors."""
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PAGES.items():
        (folder / f"{name}.py").write_text(GIVEN + text)
    (folder / "wrong.py").write_text(GIVEN + WRONG)
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    return folder


def first_wrong() -> int:
    return GIVEN.count("\n") + 1


@pytest.mark.nightly
def test_mypy(programs: Path) -> None:
    files = map(str, sorted(programs.glob("*.py")))
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, cwd=ROOT)
    errors = [Path(line).name.split(":")[:2] for line in done.stdout.splitlines() if ": error:" in line]
    wanted = [["wrong.py", str(first_wrong() + place)] for place in range(WRONG.count("\n"))]
    assert errors == wanted, done.stdout


@pytest.mark.nightly
def test_pyright(programs: Path) -> None:
    command = [Path(sys.executable).with_name("basedpyright"), "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, "--project", programs], capture_output=True, text=True, timeout=HANG_S, check=False, cwd=programs
    )
    told = json.loads(done.stdout)
    errors = {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in told["generalDiagnostics"]
        if each["severity"] == "error"
    }
    assert told["summary"]["filesAnalyzed"] == len(PAGES) + 1
    assert errors == {("wrong.py", first_wrong() + place) for place in range(WRONG.count("\n"))}, done.stdout
