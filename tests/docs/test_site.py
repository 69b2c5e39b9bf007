"""The documentation site: strict links, and complete generated pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from live import HANG_S

import tcpwin
from tcpwin.cli.program import COMMANDS
from tcpwin.limits import all_rules

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "tcpwin" / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ROOT / ".ci" / "site.yml", "-d", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "not included in the" not in done.stderr, done.stderr
    return out


@pytest.mark.nightly
def test_every_page_and_every_rule_is_there(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    pages |= {f"rules/{code}.html" for code in all_rules()} | {"rules/index.html", "readme.html", "dashboard.html"}
    assert {page for page in pages if not (site / page).is_file()} == set()


@pytest.mark.nightly
def test_the_api_has_every_public_name(site: Path) -> None:
    ids = set(re.findall(r'<h2 id="([^"]+)"', (site / "api.html").read_text(encoding="utf8")))
    assert {name for name in tcpwin.__all__ if not any(each.endswith(f".{name}") for each in ids)} == set()


@pytest.mark.nightly
def test_every_command_lists_its_options(site: Path) -> None:
    page = (site / "commands.html").read_text(encoding="utf8")
    assert {name for name in COMMANDS if f'id="tcpwin-{name}' not in page} == set()


@pytest.mark.nightly
def test_a_search_finds_rules_and_the_api(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"rules/TW202.html", "api.html", "hosts/ss.html", "for-engineers.html"} <= found


def test_the_examples_for_scripts_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (DOCS / "for-scripts.md").read_text(encoding="utf8")
    given: dict[str, object] = {}
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 5
    for example in examples:
        exec(example, given)
    said = capsys.readouterr().out
    assert "0 receiver_application" in said
    assert "TW201" in said
    assert "text.pcap 0" in said
