"""Every surface states the same verdict on a connection: limit, share, cost and confidence.

Each test checks one surface, on a twelfth of the captures by day and on the others at night: bundled captures first,
then reference captures.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any
from unicodedata import normalize
from xml.etree import ElementTree

import pytest
from analysis.bundled import CAPTURES, READABLE, name_of
from click.testing import CliRunner
from fastapi.testclient import TestClient
from playwright.sync_api import Browser
from pypdf import PdfReader
from reference import ABSENT, REFERENCE_CAPTURES
from spread import some_by_day
from web.crafted import API, analysed

import tcpwin
from tcpwin import figures
from tcpwin.cli.analyze import analyze as analyze_command
from tcpwin.cli.options import CaptureOptions
from tcpwin.limits import LIMIT_NAMES, VERDICT_FIELDS, Finding, Verdict, compare, is_about
from tcpwin.limits.columns import verdict_parts
from tcpwin.render.comparing.comparison import render_comparison
from tcpwin.render.report import figures as drawn_figures
from tcpwin.render.report import pdf
from tcpwin.render.report.figures import Drawn
from tcpwin.render.report.markdown_form import plain
from tcpwin.render.report.report import Report
from tcpwin.render.report.table import make_table
from tcpwin.render.view.verdict import full_verdict, verdict_row, view_verdict
from tcpwin.units import rate_text, time_text
from tcpwin_web import Settings, create_app
from tcpwin_web.results import columns, layout, queries

check_module = import_module("tcpwin.cli.check")
COUNT = 60
MAX_BYTES = 3_000_000
"""Size limit of the captures; the texts do not depend on it."""
TOLD = 3
"""Connections described in full in each report."""


def captures() -> Iterator[Path]:
    """Return the bundled captures, then names of reference captures until there are enough."""
    own = [path for path in READABLE if path.stat().st_size <= MAX_BYTES]
    yield from own[:COUNT]
    others = sorted(
        path
        for pattern in ("lab/*/*.pcap*", "real/**/*.pcap*")
        for path in REFERENCE_CAPTURES.glob(pattern)
        if path.is_file() and path.stat().st_size <= MAX_BYTES
    )
    yield from others[: max(COUNT - len(own), 0)]


class Told:
    """A capture, its verdicts and its report."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.analysis = tcpwin.analyze(path)
        self.verdicts: dict[int, Verdict] = {each.id: each.verdict for each in self.analysis}
        self.report: Report = self.analysis.report(limit=TOLD)

    def duration_ns(self, id: int) -> int:
        return self.analysis.connections[id].duration_ns

    def weight(self, finding: Finding) -> tuple[str, str]:
        """Return the text that every form must give for a finding's cost and confidence.

        An observation may be more certain than its role as the limit: a cost has the verdict's confidence.
        """
        verdict = None if finding.connection is None else self.verdicts[finding.connection]
        lost, sure = time_text(finding.cost_ns) if finding.cost_ns else "", finding.confidence
        if verdict is not None and is_about(finding, verdict):
            sure = max(sure, verdict.confidence, key=("certain", "likely", "possible").index)
            if lost and sum(finding.items_ns.values()) < verdict.time_ns:
                limit = LIMIT_NAMES[verdict.also or verdict.limit]
                lost += f" of the {time_text(verdict.named_ns)} lost in all ({limit})"
        return lost, sure

    def words(self, id: int) -> list[str]:
        """Return what each text form must contain for a connection: answer, reason, cost and fix."""
        words = view_verdict(self.verdicts[id])
        beside = words.beside.removeprefix("What can be fixed: ")
        return [each for each in (words.answer, words.why, beside, words.cost, words.fix, words.evidence) if each]


@pytest.fixture(scope="module", params=some_by_day(captures(), of=12), ids=name_of)
def told(request: pytest.FixtureRequest) -> Told:
    return Told(request.param)


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def run(told: Told, *arguments: str) -> tuple[str, int]:
    """Return output and exit status of `tcpwin analyze`."""
    done = CliRunner().invoke(analyze_command, [str(told.path), *arguments], standalone_mode=False)
    assert done.exception is None
    return done.output, done.return_value


def says(text: str, words: str) -> bool:
    """Return whether a text contains words, however it is wrapped."""
    return one_line(words) in one_line(text)


def test_the_words_hold_the_machine_fields(told: Told) -> None:
    """Text surfaces are searched for these words, so they must contain limit, share, cost and confidence."""
    for verdict in told.verdicts.values():
        words = view_verdict(verdict)
        if verdict.limit not in ("none", "capture"):
            share, confidence = re.findall(r"\((\d+) ?% of the time, (\w+)\)", words.answer)[0]
            assert (int(share), confidence) == (round(verdict.share * 100), verdict.confidence)
        # A cost is stated once, with its limit.
        is_said = f"cost {time_text(verdict.named_ns)} (" in words.beside
        assert (bool(words.cost) or is_said) == verdict.is_problem
        assert not (words.cost and is_said)
        if verdict.is_problem and not is_said:
            assert time_text(verdict.named_ns) in words.cost
        assert not (words.fix and not verdict.is_problem)


def test_verdicts_keep_to_the_connection(told: Told) -> None:
    for id, verdict in told.verdicts.items():
        duration_ns = told.analysis.connections[id].duration_ns
        assert 0 <= verdict.share <= 1
        assert verdict.cost_low_ns <= verdict.cost_ns <= verdict.cost_high_ns <= duration_ns
        assert verdict.lost_ns <= duration_ns
        assert verdict.cost_ns <= verdict.share * duration_ns + 1000


def test_text(told: Told) -> None:
    for id in told.report.shown_ids:
        text, _ = run(told, "--connection", str(id))
        verdict = told.verdicts[id]
        words = view_verdict(verdict)
        assert all(says(text, each) for each in (words.answer, words.beside, words.cost, words.fix))


def test_weight_of_findings_as_text(told: Told, checked: Callable[[str], str]) -> None:
    """Terminal, annotations and XML state the same cost, with at most the verdict's confidence."""
    [run_told] = json.loads(checked("sarif"))["runs"]
    junit = one_line("\n".join(ElementTree.fromstring(checked("junit")).itertext()))
    texts = [one_line(checked("text")), one_line(unescape(checked("github"))).replace("%25", "%"), junit]
    for finding, result in zip(told.analysis.findings, run_told["results"], strict=True):
        lost, sure = told.weight(finding)
        cost = f"{'' if ' of ' in lost else 'time lost '}{lost}, " if lost else ""
        rate = f"rate lost {rate_text(finding.lost_bps)}, " if finding.lost_bps else ""
        assert f"({cost}{rate}{sure})" in result["message"]["text"]
        for text in texts:
            assert f"{finding.code} {finding.name} ({finding.severity}, {cost}{rate}{sure})" in text


def test_weight_of_findings_in_the_report(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_figures_out(monkeypatch)
    page, text = told.report.html(), told.report.markdown()
    articles = re.findall(r'<article class="finding.*?</article>', page, re.DOTALL)
    sections = text.partition("## Findings")[2].partition("\n## ")[0].split("\n### ")[1:]
    for finding, article, section in zip(told.report.shown_findings, articles, sections, strict=True):
        lost, sure = told.weight(finding)
        assert ("<dt>cost</dt>" in article) == bool(lost)
        assert not lost or f'<dd class="number">{lost}</dd>' in unescape(article)
        assert f"<dt>confidence</dt><dd>{sure}</dd>" in article
        cost = f", time lost {lost}" if lost else ""
        assert plain(f"{finding.severity}{cost}") in section
        assert f"confidence {sure}\n" in section


def test_summary(told: Told) -> None:
    """The summary describes the worst or only connection."""
    worst = told.analysis.worst(1)
    verdict = told.analysis.summary.verdict
    assert verdict == told.analysis.verdict
    if not worst:
        assert verdict is None
        return
    assert verdict is not None
    assert verdict in told.verdicts.values()
    if verdict.is_problem or len(told.analysis) == 1:
        assert verdict.text in told.analysis.summary.text
    else:
        assert re.search("No (problem found|connection lost time)[.] ", told.analysis.summary.text)


def test_exit_code_and_order(told: Told) -> None:
    has_problem = any(each.is_problem for each in told.verdicts.values())
    assert run(told, "--check", "--limit", "0")[1] == int(has_problem)
    problems = list(told.analysis.problems)
    assert set(problems) == {id for id, each in told.verdicts.items() if each.is_problem}
    assert [told.verdicts[id].lost_ns for id in problems] == sorted(
        (told.verdicts[id].lost_ns for id in problems), reverse=True
    )
    for id in told.report.shown_ids[:1]:
        assert run(told, "--check", "--connection", str(id))[1] == int(told.verdicts[id].is_problem)


def test_report_as_json(told: Told) -> None:
    document = json.loads(told.report.json())
    worst = told.analysis.verdict
    assert document["summary"]["verdict"] == (None if worst is None else json.loads(json.dumps(full_verdict(worst))))
    assert [each["id"] for each in document["worst"]] == list(told.report.shown_ids)
    for each in document["worst"]:
        assert each["verdict"] == json.loads(json.dumps(full_verdict(told.verdicts[each["id"]])))


def in_json(verdict: Verdict | None) -> Any:
    """Return a verdict as in JSON."""
    return None if verdict is None else {name: getattr(verdict, name) for name in VERDICT_FIELDS}


def test_analysis_as_json(told: Told) -> None:
    document = json.loads(told.analysis.to_json())
    assert document["verdict"] == in_json(told.analysis.verdict)
    assert document["summary"]["text"] == told.analysis.summary.text
    assert {each["id"]: each["verdict"] for each in document["connections"]} == {
        id: in_json(verdict) for id, verdict in told.verdicts.items()
    }
    for each in document["connections"]:
        verdict = each["verdict"]
        assert sum(each["budget"][verdict["direction"] or "a_to_b"]["items_ns"].values()) == each["duration_ns"]


def test_columns_of_many(told: Told) -> None:
    """Read verdicts in batches, as for many connections."""
    table: dict[str, list[Any]] = {name: [] for name in VERDICT_FIELDS}
    for part in verdict_parts(told.analysis, rows=7):
        for name, values in part.items():
            table[name] += values.tolist()
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert rows == [in_json(told.verdicts[id]) for id in range(len(told.verdicts))]


@pytest.fixture
def checked(told: Told, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run `tcpwin check` in a format on the existing analysis."""
    monkeypatch.setattr(CaptureOptions, "analyze", lambda *_, **__: told.analysis)

    def run_check(form: str) -> str:
        arguments = [str(told.path), "--format", form]
        done = CliRunner().invoke(check_module.check, arguments, standalone_mode=False)
        assert done.exception is None
        return str(done.stdout)

    return run_check


def test_check_as_json(told: Told, checked: Callable[[str], str]) -> None:
    document = json.loads(checked("json"))
    assert document["verdict"] == in_json(told.analysis.verdict)
    assert [each["verdict"] for each in document["connections"]] == [
        in_json(told.verdicts[each["id"]]) for each in document["connections"]
    ]
    assert len(document["connections"]) == len(told.verdicts)
    for finding, described in zip(told.analysis.findings, document["findings"], strict=True):
        has_cost = finding.cost_ns or finding.lost_bps
        assert described["cost_confidence"] == (told.weight(finding)[1] if has_cost else None)


def test_sarif(told: Told, checked: Callable[[str], str]) -> None:
    [run_told] = json.loads(checked("sarif"))["runs"]
    assert run_told["properties"]["verdict"] == in_json(told.analysis.verdict)
    for each in run_told["results"]:
        id = each["properties"]["connection"]
        assert each["properties"]["verdict"] == (None if id is None else in_json(told.verdicts[id]))


def test_junit(told: Told, checked: Callable[[str], str]) -> None:
    suites = ElementTree.fromstring(checked("junit"))
    told_there = {each.get("name"): each.get("value") for each in suites.iter("property")}
    expected = in_json(told.analysis.verdict) or {}
    for name in ("limit", "confidence", "owner"):
        assert told_there.get(f"verdict.{name}") == expected.get(name)
    for name in ("share", "cost_ns", "lost_ns", "is_problem"):
        assert json.loads(told_there.get(f"verdict.{name}") or "null") == expected.get(name)


def test_github(told: Told, checked: Callable[[str], str]) -> None:
    *annotations, _ = checked("github").splitlines()
    if not told.verdicts:
        return
    closing = annotations.pop()
    [worst] = told.analysis.worst(1)
    assert closing.startswith(f"Connection {worst.id}: ")
    words = view_verdict(told.verdicts[worst.id])
    assert all(says(closing, each) for each in (words.answer, words.beside, words.cost))
    for finding, line in zip(told.analysis.findings, annotations, strict=True):
        if finding.connection is not None:
            words = view_verdict(told.verdicts[finding.connection])
            assert all(each.replace("%", "%25") in line for each in (words.answer, words.beside, words.cost))


def test_rows_of_the_service(told: Told, tmp_path: Path) -> None:
    """Lists, filters and sort orders use the right values."""
    columns.write_connections(told.analysis, tmp_path / layout.CONNECTIONS)

    def rows(*where: str) -> list[dict[str, Any]]:
        page = queries.list_connections(tmp_path, search="", where=where, sort=queries.WORST, offset=0, limit=10_000)
        return queries.describe_rows(page.rows)

    every = rows()
    assert {each["id"]: each["verdict"] for each in every} == {
        id: in_json(verdict) for id, verdict in told.verdicts.items()
    }
    problems = list(told.analysis.problems)
    assert [each["id"] for each in every][: len(problems)] == problems
    assert [each["id"] for each in rows("verdict.is_problem=true")] == problems
    for limit in {each.limit for each in told.verdicts.values()}:
        found = {each["id"] for each in rows(f"verdict.limit={limit}")}
        assert found == {id for id, each in told.verdicts.items() if each.limit == limit}


def test_markdown(told: Told) -> None:
    text = told.report.markdown()
    for id in told.report.shown_ids:
        section = text.partition(f"## Connection {id}: ")[2].partition("\n## ")[0]
        for words in told.words(id):
            assert plain(words)[1:] in section


def test_page(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the page's text; figures have other tests."""
    leave_figures_out(monkeypatch)
    page = told.report.html()
    for id in told.report.shown_ids:
        assert_article(page, id, told.words(id))


def leave_figures_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, drawn in (
        ("draw_connections", lambda report: [Drawn() for _ in report.shown_ids]),
        ("draw_overview", lambda _: None),
        ("draw_beside", lambda _: {}),
    ):
        monkeypatch.setattr(drawn_figures, name, drawn)


def assert_article(page: str, id: int, sentences: list[str]) -> None:
    """Check the page's section on a connection; its first letter may be a capital."""
    article = page.partition(f'id="connection-{id}"')[2].partition("</article>")[0]
    text = one_line(unescape(re.sub(r"<[^>]+>", " ", article)))
    for words in sentences:
        # The page shows what texts put in backticks as code.
        assert one_line(words.replace("`", " "))[1:] in text


def test_table_of_all_connections(told: Told) -> None:
    packed = json.loads(gzip.decompress(base64.b64decode(make_table(told.report).packed)))
    columns: dict[str, Any] = {each["key"]: each for each in packed["columns"]}

    def cells(key: str) -> list[str]:
        return [columns[key]["names"][each] for each in columns[key]["values"]]

    verdicts = [told.verdicts[id] for id in columns["id"]["values"]]
    assert len(verdicts) == len(told.verdicts)
    assert cells("limit") == [LIMIT_NAMES[each.limit] for each in verdicts]
    assert cells("confidence") == [each.confidence for each in verdicts]
    assert columns["share"]["values"] == [round(100 * each.share) for each in verdicts]
    costs = columns["cost"]["values"]
    assert [each is not None for each in costs] == [each.is_problem for each in verdicts]
    named_us = [each.named_ns / 1000 for each in verdicts if each.is_problem]
    assert [each for each in costs if each is not None] == pytest.approx(named_us, rel=1e-4, abs=0.51)


def test_overview(told: Told) -> None:
    """Each point is named after its connection's limit."""
    drawn = figures.plain("overview", told.analysis, direction=None, **drawn_figures.OPTIONS)
    for trace in drawn["data"]:
        for id in trace.get("customdata", ()):
            assert trace["name"] == LIMIT_NAMES[told.verdicts[int(id)].limit]


def test_comparison(told: Told) -> None:
    """Comparing a capture with itself, each pair has its connection's limits and nothing changes."""
    comparison = compare(told.analysis, told.analysis, old_findings=None, new_findings=None)
    for pair in comparison.pairs:
        assert pair.old_verdict == told.verdicts[pair.match.old]
        assert pair.new_verdict == told.verdicts[pair.match.new]
        lost = pair.change("lost_ns")
        assert (lost.old, lost.new) == (pair.old_verdict.lost_ns, pair.new_verdict.lost_ns)
    text = "\n".join(render_comparison(told.analysis, told.analysis, comparison, limit=1))
    for pair in comparison.pairs[:1]:
        assert f"{view_verdict(pair.old_verdict).label} → {view_verdict(pair.new_verdict).label}" in text


@pytest.mark.parametrize("told", some_by_day(captures(), of=9), ids=name_of, indirect=True)
def test_pdf(told: Told, browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the printed report's text; figures have separate tests, and one browser prints all."""

    def print_page(html: str) -> bytes:
        page = browser.new_page()
        page.set_content(html)
        printed = page.pdf()
        page.close()
        return printed

    leave_figures_out(monkeypatch)
    monkeypatch.setattr(pdf, "print_page", print_page)
    assert_printed(told, told.report.pdf())


@pytest.mark.parametrize("name", some_by_day(["lab/slow-reader.pcap.gz", "wild/lossy-path.pcapng.gz"], of=2))
def test_pdf_as_people_print_it(name: str, tool: Callable[[str], str]) -> None:
    tool("chromium")
    told = Told(CAPTURES / name)
    assert_printed(told, told.report.pdf())


def assert_printed(told: Told, printed: bytes) -> None:
    """Check that a PDF contains the verdict of each connection described in full."""

    def letters(text: str) -> str:
        """Remove spaces (lines may break there), code marks and ligatures."""
        return re.sub(r"[\s`]", "", normalize("NFKC", text))

    text, missing = "", {letters(words)[1:] for id in told.report.shown_ids for words in told.words(id)}
    for page in PdfReader(BytesIO(printed)).pages:
        # A page takes half a second to read: stop after the last words searched for.
        if not missing:
            break
        text += letters(page.extract_text())
        missing = {words for words in missing if words not in text}
    assert not missing


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(data=tmp_path_factory.mktemp("service"), workers=1)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("told", some_by_day(captures(), of=9, first=1), ids=name_of, indirect=True)
def test_pages_of_the_service(told: Told, service: TestClient) -> None:
    """Check badges, cells and the API's rows of an uploaded capture."""
    id = analysed(service, told.path.read_bytes(), told.path.name)
    entry = service.get(f"{API}/captures/{id}").json()
    expected = in_json(told.analysis.verdict)
    assert entry["verdict"] == (expected and {name: expected[name] for name in entry["verdict"]})
    rows = service.get(f"{API}/captures/{id}/connections").json()["connections"]
    for row in rows:
        verdict = in_json(told.verdicts[row["id"]])
        assert row["verdict"] == {name: verdict[name] for name in row["verdict"]}
    page = service.get(f"/captures/{id}").text
    badges = [unescape(each) for each in re.findall(r'<span class="badge problem">([^<]*)</span>', page)]
    problems = [verdict_row(row["verdict"]) for row in rows if row["verdict"]["is_problem"]]
    in_rows = [each.problem if each.is_elsewhere else each.limits for each in problems]
    assert badges == ([verdict_row(entry["verdict"]).problem, *in_rows] if problems else [])
    text = one_line(unescape(re.sub(r"<[^>]+>", " ", page)))
    for row in rows:
        shown = verdict_row(row["verdict"])
        assert f" {shown.share or '–'} {shown.confidence} {shown.cost or '–'} " in text
    for finding in told.analysis.findings:
        lost, sure = told.weight(finding)
        cost = f"{'' if ' of ' in lost else 'time lost '}{lost} " if lost else ""
        rate = f"rate lost {rate_text(finding.lost_bps)} " if finding.lost_bps else ""
        assert f" {finding.code} {finding.name} {cost}{rate}{sure} " in text


@pytest.mark.skipif(not REFERENCE_CAPTURES.is_dir(), reason=ABSENT)
def test_there_are_enough_captures() -> None:
    assert len(list(captures())) == COUNT
