"""Pages of bundled captures agree with themselves, with each other and with `tcpwin check`."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from reference import ROOT
from spread import some_by_day
from web.crafted import analysed

import tcpwin
from tcpwin.limits import Severity
from tcpwin.units import time_text
from tcpwin_web import Settings, create_app

BUNDLED = sorted(
    path for folder in ("lab", "wild") for path in (ROOT / "captures" / folder).iterdir() if path.suffix != ".toml"
)
FIELD = sorted((ROOT.parent / "shared" / "captures" / "field").glob("*.pcap.gz"))
HOSTS_BY_LETTER = re.compile(r"\b(?:host|by|between) [ab]\b(?! [a-z])|\b[ab]'s\b|\b[ab] ?→ ?[ab]\b")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data=tmp_path_factory.mktemp("data"), workers=1))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", some_by_day(BUNDLED, of=12), ids=lambda path: path.name)
def test_pages_of_bundled_captures_agree(served: TestClient, path: Path) -> None:
    check(served, path)


@pytest.mark.nightly
@pytest.mark.skipif(not FIELD, reason="no field captures at ../shared")
@pytest.mark.parametrize("path", FIELD, ids=lambda path: path.name)
def test_pages_of_field_captures_agree(served: TestClient, path: Path) -> None:
    check(served, path)


def check(served: TestClient, path: Path) -> None:
    analysis = tcpwin.analyze(path)
    id = analysed(served, path.read_bytes(), path.name)
    page = served.get(f"/captures/{id}").text
    answer = words(page.partition('aria-label="Answer"')[2].partition("</section>")[0])
    severities = re.findall(r'<article class="finding (\w+)"', page)
    badge = re.search(r'<h1>.*?<span class="badge (\w+)">', page, re.DOTALL)
    assert badge
    # `tcpwin check` exits with 1 for findings of warning or worse.
    fails = any(each.severity >= Severity.WARNING for each in analysis.findings)
    assert (badge[1] in ("problem", "warning", "error")) == fails == bool({"warning", "error"} & set(severities))
    assert (badge[1] == "problem") == bool(analysis.problems)
    if badge[1] == "problem":
        assert re.search(r"\b(Fix|Look at next)\b", answer)
    assert not ("Nothing to fix" in answer and re.search(r"\bFix\b", answer))
    check_counts(page, analysis)

    for text in [words(page.partition("<main")[2]), *connection_texts(served, id, analysis)]:
        assert "`" not in text
        assert not HOSTS_BY_LETTER.search(text)
        if "larger receive buffer would not help" in text:
            assert not re.search(r"Fix[^:]*: [^.]*(receive buffer|rmem)", text)


def check_counts(page: str, analysis: tcpwin.Analysis) -> None:
    """Check that the counts of connections add up, and that shares name the cost that the answer shows."""
    text = words(page)
    if found := re.search(r"(\d+) with a problem: (.*?)\.", text):
        assert int(found[1]) == len(analysis.problems) == sum(map(int, re.findall(r"\((\d+)\)", found[2])))
    costs = {time_text(each.verdict.named_ns) for each in map(analysis.connections.__getitem__, analysis.problems)}
    assert set(re.findall(r"of the (\S+ (?:min \d+ )?\S?s) lost in all", text)) <= costs


def connection_texts(served: TestClient, id: str, analysis: tcpwin.Analysis) -> Iterator[str]:
    """Yield the text of the worst connection's page, whose answer must be that of the capture's page."""
    for connection in analysis.worst(1):
        page = served.get(f"/captures/{id}/connections/{connection.id}").text
        text = words(page.partition("<main")[2])
        assert connection.verdict.answer in text
        yield text


def words(page: str) -> str:
    """Return the visible text of a page."""
    shown = re.sub(r"<(script|style|noscript|textarea)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", shown)))
