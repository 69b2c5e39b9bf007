"""The waterfall of exchanges: its rows are the exchanges' times, in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from report.figures.drawn import SLOW_READER, drawn, nothing, trace
from stories.conversation import Conversation, Exchange

from tcpwin import figures
from tcpwin.figures.kinds.exchanges import ROWS


def test_each_part_follows_the_one_before(tmp_path: Path) -> None:
    connection = (
        Conversation([Exchange(0.01, 0.2), Exchange(0.03, 0.004)], 0.02).story().analyze(tmp_path).connections[0]
    )
    figure = figures.draw("exchanges", connection)
    table = connection.exchange_table()
    start_s = (table["start_ns"] - connection.start_ns) / 1e9
    server = trace(figure, "server")
    assert np.asarray(server.width) == pytest.approx([0.2, 0.004], rel=0.01)
    # Captured at the client: its request, a round trip, then the server's time.
    assert np.asarray(server.x) == pytest.approx(start_s + table["path_ns"] / 1e9, abs=1e-4)
    assert np.asarray(server.base).tolist() == [1, 0]
    client = trace(figure, "client")
    assert np.asarray(client.x) + np.asarray(client.width) == pytest.approx(start_s, abs=1e-4)
    assert "2 exchanges in " in figure.layout.title.text
    assert "server 72 %" in figure.layout.title.text


def test_of_many_the_longest_are_drawn(tmp_path: Path) -> None:
    many = [Exchange(0.001, 0.3 if number == 50 else 0.001) for number in range(60)]
    connection = Conversation(many, 0.02).story().analyze(tmp_path).connections[0]
    figure = figures.draw("exchanges", connection)
    server = trace(figure, "server")
    assert len(np.asarray(server.x)) == ROWS
    assert np.asarray(server.width).max() == pytest.approx(0.3, rel=0.01)
    assert f"The {ROWS} longest of 60." in figure.layout.title.text
    table = connection.exchange_table()
    first, last = (int(table["start_ns"][row]) for row in (3, 6))
    zoomed = figures.draw("exchanges", connection, start_ns=first, end_ns=last)
    assert 3 <= len(np.asarray(trace(zoomed, "server").x)) <= 5


def test_a_transfer_has_no_exchanges() -> None:
    assert nothing(drawn("exchanges", SLOW_READER)) == "neither side answers the other"
