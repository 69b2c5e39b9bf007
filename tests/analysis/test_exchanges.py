"""Exchanges: the same times at each capture point, and what many alike have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories.conversation import Conversation, Exchange, interleaved

import tcpwin
from tcpwin import errors
from tcpwin.analysis import EXCHANGE_COLUMNS, GROUPS, exchanges

CAPTURES = Path(__file__).parents[2] / "captures"
PLACES = (0.0, 0.3, 0.5, 1.0)
MS = 1_000_000


def analyzed(folder: Path, drawn: list[Exchange], place: float = 0.0, rtt_s: float = 0.02) -> tcpwin.Analysis:
    return Conversation(drawn, rtt_s, place).story().analyze(folder)


@pytest.mark.parametrize("place", PLACES)
def test_each_exchange_has_its_times(tmp_path: Path, place: float) -> None:
    drawn = [
        Exchange(0.001, 0.002),
        Exchange(0.01, 0.3, answer_bytes=5_000),
        Exchange(0.02, 0.004, request_bytes=2_000),
    ]
    table = analyzed(tmp_path, drawn, place).connections[0].exchange_table()
    assert list(table) == list(EXCHANGE_COLUMNS)
    for name, expected in (("think_ns", [1, 10, 20]), ("work_ns", [2, 300, 4])):
        assert table[name].tolist() == pytest.approx([ms * MS for ms in expected], rel=0.02), name
    # The handshake's last segment leaves with the first request: a round trip less half of it is on its way before.
    assert table["path_ns"].tolist()[1:] == pytest.approx([20 * MS] * 2, rel=0.01)
    assert table["answer_bytes"].tolist() == [900, 5_000, 900]
    assert table["request_bytes"].tolist() == [200, 200, 2_000]
    # A gigabit: three more segments of the second answer, one of the third request.
    assert table["transfer_ns"].tolist() == pytest.approx([0, 36_000, 0], abs=2_000)
    assert table["request_ns"].tolist() == pytest.approx([0, 0, 12_000], abs=2_000)
    assert (table["request_frame"] <= table["request_end_frame"]).all()
    assert (table["request_end_frame"] < table["answer_frame"]).all()


@pytest.mark.parametrize("place", PLACES)
def test_the_table_adds_up_to_the_turns_of_the_connection(tmp_path: Path, place: float) -> None:
    drawn = [Exchange(0.001 * (1 + number % 7), 0.002 * (1 + number % 5)) for number in range(60)]
    connection = analyzed(tmp_path, drawn, place).connections[0]
    table = connection.exchange_table()
    assert table.height == connection.exchanges == 60
    for name, whole_ns in (("work_ns", connection.responder_turn_ns), ("think_ns", connection.requester_turn_ns)):
        assert int(table[name].sum()) == pytest.approx(whole_ns, rel=0.01)


@pytest.mark.parametrize("place", PLACES)
def test_a_few_slow_answers_are_named(tmp_path: Path, place: float) -> None:
    drawn = [Exchange(0.0003, 0.48 if number % 50 == 7 else 0.0012) for number in range(450)]
    [group] = analyzed(tmp_path, drawn, place).exchanges().groups
    assert (group.exchanges, group.connections, group.slow_exchanges) == (450, 1, 9)
    assert group.slow_share == pytest.approx(9 * 480 / (9 * 480 + 441 * 1.2), abs=0.002)
    assert (group.work_p50_ns / MS, group.work_max_ns / MS) == pytest.approx((1.2, 480), rel=0.02)
    assert group.path_p50_ns == pytest.approx(20 * MS, rel=0.01)
    assert "9 of 450 answers took 89 % of its time" in group.text
    assert f"at most 480 ms (frame {group.work_max_frame})" in group.text
    assert group.work_max_frame in group.slow_frames
    assert len(group.slow_frames) == exchanges.FRAMES_SHOWN


def test_even_answers_have_no_few_slow_ones(tmp_path: Path) -> None:
    [group] = analyzed(tmp_path, [Exchange(0.0003, 0.0012)] * 30).exchanges("connection").groups
    assert (group.slow_exchanges, group.slow_share, group.slow_frames) == (0, 0.0, ())
    assert group.name.startswith("connection 0: ")


def test_interleaved_data_has_no_exchanges(tmp_path: Path) -> None:
    analysis = interleaved().analyze(tmp_path)
    assert analysis.connections[0].exchange_table().height == 0
    assert analysis.exchanges().groups == ()


def test_the_number_of_rows_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analysis = analyzed(tmp_path, [Exchange()] * 12)
    monkeypatch.setattr(exchanges, "MOST_EXCHANGES", 5)
    found = exchanges.list_exchanges(analysis)
    assert (found.table.height, found.connections, found.exchanges_omitted) == (5, 1, 7)


def test_http_requests_are_grouped_by_path() -> None:
    analysis = tcpwin.analyze(CAPTURES / "wild" / "http-download.pcapng")
    summary = analysis.exchanges("path")
    assert [group.target for group in summary.groups] == ["GET /file.bin"]
    assert summary.groups[0].name.startswith("GET /file.bin at ")


@pytest.mark.parametrize("by", GROUPS)
def test_each_group_covers_all_exchanges(by: exchanges.GroupName) -> None:
    for path in sorted((CAPTURES / "wild").glob("*.pcap*")):
        analysis = tcpwin.analyze(path)
        summary = analysis.exchanges(by)
        assert sum(group.exchanges for group in summary.groups) == summary.exchanges == analysis.exchange_table().height


def test_an_unknown_group_is_refused() -> None:
    analysis = tcpwin.analyze(CAPTURES / "wild" / "http-download.pcapng")
    with pytest.raises(errors.ArgumentError, match="unknown group colour"):
        analysis.exchanges("colour")  # type: ignore[arg-type]
