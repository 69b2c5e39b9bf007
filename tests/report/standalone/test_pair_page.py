"""A pairing as a page has the terminal's text, needs no network, and contains the ladder."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from reference import LAB_RUNS

import tcpwin
from tcpwin.render import summarize_pairing, verdict_lines
from tcpwin.render.report import render_pair_page


def run(name: str) -> tuple[Path, Path]:
    return LAB_RUNS / name / "snd.pcap.gz", LAB_RUNS / name / "rcv.pcap.gz"


@pytest.fixture(scope="module")
def pairing() -> tcpwin.Pairing:
    return tcpwin.pair(*run("loss1_cubic_sack1"))


@pytest.fixture(scope="module")
def page(pairing: tcpwin.Pairing) -> str:
    return render_pair_page(pairing)


def words(page: str) -> str:
    """Return the text without markup."""
    body = page[page.index("<main") : page.index("</main>")]
    text = re.sub(r"<script.*?</script>|<[^>]+>", " ", body, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(text))


def figures(page: str) -> list[dict[str, Any]]:
    packed = re.findall(r'id="packed-(?:\d+)">([^<]+)<', page)
    return [json.loads(gzip.decompress(base64.b64decode(each)))[0] for each in packed]


def test_it_says_what_the_terminal_says(pairing: tcpwin.Pairing, page: str) -> None:
    said = words(page)
    judged = pairing.judge(0)
    assert judged is not None
    for line in (*summarize_pairing(pairing), *verdict_lines(judged)):
        assert re.sub(r"\s+", " ", line) in said
    assert "5,586 59 (1.06 %)" in said
    assert "59 retransmissions: 59 after a lost packet" in said


def test_its_ladder_has_the_losses(page: str) -> None:
    [ladder] = figures(page)
    assert len(ladder["layout"]["xaxis"]["range"]) == 2
    [lost] = [trace for trace in ladder["data"] if trace["name"] == "lost"]
    assert len(lost["text"]) == 3 * 59


def test_it_asks_no_other_host(page: str) -> None:
    assert "default-src 'none'" in unescape(page)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_one_connection_of_several() -> None:
    pairing = tcpwin.pair(*run("iperf3_300ms_20mbit_512m2"))
    page = render_pair_page(pairing, connection=1)
    assert 'id="connection-1"' in page
    assert 'id="connection-0"' not in page
    assert len(figures(render_pair_page(pairing, limit=1))) == 1
    assert len(figures(render_pair_page(pairing))) == 2


def test_nothing_in_common_is_a_page_too() -> None:
    pairing = tcpwin.pair(run("loss1_cubic_sack1")[0], run("slow_reader")[1])
    said = words(render_pair_page(pairing))
    assert "No connection is in both captures" in said
    assert "Only in a: 1 connection" in said


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "<script>alert(1)<"
    path.write_bytes(run("slow_reader")[0].read_bytes())
    page = render_pair_page(tcpwin.pair(path, run("slow_reader")[1]))
    assert "<script>alert" not in page
    assert "alert(1)" in page
