"""The longest exchanges as a connection's page shows them."""

from __future__ import annotations

from pathlib import Path

from stories.conversation import Conversation, Exchange

from tcpwin.render.view.connection import overview
from tcpwin.render.view.exchanges import SHOWN


def test_a_page_has_the_longest_exchanges_and_a_sentence(tmp_path: Path) -> None:
    many = [Exchange(0.001, 0.3 if number == 25 else 0.002) for number in range(30)]
    connection = Conversation(many, 0.02).story().analyze(tmp_path).connections[0]
    page = overview(connection)
    assert (page.exchange_count, len(page.exchanges)) == (30, SHOWN)
    assert page.exchange_text.startswith("The server took 2 ms (median)")
    [slow] = [row for row in page.exchanges if row.times[3] == "300 ms"]
    assert slow.sizes == ("200 B", "900 B")
    assert slow.times[2] == "20 ms"
    assert slow.span_ns[1] - slow.span_ns[0] >= 320_000_000


def test_a_transfer_has_none(tmp_path: Path) -> None:
    one_way = Conversation([], 0.02).story().handshake(near="a").burst("a", 20)
    page = overview(one_way.analyze(tmp_path).connections[0])
    assert (page.exchange_text, page.exchange_count, list(page.exchanges)) == ("", 0, [])
