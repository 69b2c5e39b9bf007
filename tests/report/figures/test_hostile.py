"""External names are shown as text: plotly renders links and styles in labels, and fills %{...} in hover boxes."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from report.figures.drawn import BUNDLE, MANY_SHORT, NAMES

import tcpwin
from tcpwin import figures
from tcpwin.figures.drawing.export import write
from tcpwin.figures.drawing.text import MAX_CHARACTERS, escape, short

MARKUP = '<a href="javascript:alert(1)">x<b>&amp;%{x}</b>'
OURS = {"b", "br", "span", "extra"}
"""Tags used by figures."""


class Tags(HTMLParser):
    """Collects what a browser would interpret as tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


def texts(value: Any) -> list[str]:
    """Return every string in a document."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tcpwin.Analysis:
    """Analyse the bundled case under names that contain markup."""
    folder = tmp_path_factory.mktemp("hostile")
    with zipfile.ZipFile(BUNDLE) as bundle:
        bundle.extractall(folder)
    found = folder / "slow-reader"
    snapshots = [(MARKUP, found / name) for name in ("ss_receiver.txt", "nstat_receiver.csv")]
    snapshots += [
        ("</script><script>alert(1)</script>", found / f"{name}") for name in ("ss_sender.txt", "nstat_sender.csv")
    ]
    capture = (found / "sender.pcap.gz").rename(found / "<i onmouseover=alert(1)> %{y}")
    return tcpwin.analyze(capture, snapshots=snapshots)


@pytest.mark.parametrize("name", NAMES)
def test_no_figure_takes_tags_from_names(name: str, hostile: tcpwin.Analysis) -> None:
    document = json.loads(figures.draw(name, hostile).to_json())
    tags = Tags()
    for text in texts(document):
        tags.feed(text)
    tags.close()
    assert {tag for tag, _ in tags.found} <= OURS
    for tag, attributes in tags.found:
        if attributes:
            assert tag == "span"
            assert [key for key, _ in attributes] == ["style"]
            assert re.fullmatch(r"font-size:11px;color:#[0-9a-f]{6}", attributes[0][1] or "")


@pytest.mark.parametrize("name", NAMES)
def test_no_hover_box_fills_in_what_a_name_asks_for(name: str, hostile: tcpwin.Analysis) -> None:
    for each in figures.draw(name, hostile).data:
        used = set(re.findall(r"%\{(\w+)", each.hovertemplate or ""))
        assert used <= {"x", "y", "text", "hovertext", "customdata"}
        assert "%{x}" not in (each.hovertemplate or "")


def test_hostile_names_are_seen_as_they_are(hostile: tcpwin.Analysis) -> None:
    title = figures.draw("overview", hostile).layout.title.text
    assert "&lt;ionmouseover=alert(1)&gt;" in re.sub(r"<[^>]*>|\s", "", title)
    labels = [each.text for each in figures.draw("counters", hostile).layout.annotations]
    assert any(label.startswith("&lt;a href=") for label in labels)


def test_a_page_cannot_be_left_by_a_name(hostile: tcpwin.Analysis, tmp_path: Path) -> None:
    out = tmp_path / "hostile.html"
    write(figures.draw("counters", hostile), str(out), title=f"{MARKUP}</title><script>alert(1)</script>")
    page = out.read_text(encoding="utf8")
    head, _, body = page.partition("<body>")
    assert "<script" not in head
    assert "&lt;/title&gt;&lt;script&gt;" in head
    assert "</script><script>alert" not in body
    assert page.count("alert(1)</script>") == 0


@pytest.mark.nightly
def test_a_browser_shows_names_as_text(hostile: tcpwin.Analysis, tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("chromium")
    out = tmp_path / "hostile.svg"
    write(figures.draw("counters", hostile), str(out), title="hostile")
    picture = ElementTree.parse(out)
    tags = {each.tag.rpartition("}")[2] for each in picture.iter()}
    assert tags & {"a", "script", "image", "foreignObject"} == set()
    shown = " ".join("".join(each.itertext()) for each in picture.iter() if each.tag.endswith("}text"))
    assert '<a href="javascript:alert(1)">x<b>&amp;' in shown


def test_texts_are_bounded_and_on_one_line() -> None:
    assert escape("a\n\x1b[31m\u202eb") == "a\\n\\x1b[31m\\u202eb"
    assert len(escape("x" * 1000)) == MAX_CHARACTERS
    assert escape("&<>") == "&amp;&lt;&gt;"
    assert "%{" not in escape("%{x}")
    assert short("a-very-long-host.example.net", 10) == "a-very-lo…"
    assert short("<" * 5) == "&lt;" * 5


def test_an_address_is_not_a_link() -> None:
    """IPv6 addresses and ports need no escaping and remain unchanged."""
    connection = tcpwin.analyze(MANY_SHORT).connections[0]
    assert str(connection.a) in figures.draw("window", connection).layout.title.text
