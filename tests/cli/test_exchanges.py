"""`tcpwin exchanges`: text, JSON, CSV and Parquet say the same, and empty answers have a reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars
import pytest
from cli.command import CAPTURES, MANY_SHORT, SLOW_READER, refused, tcpwin
from stories.conversation import Conversation, Exchange

from tcpwin.analysis import EXCHANGE_COLUMNS

HTTP = CAPTURES / "wild" / "http-download.pcapng"


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    drawn = [Exchange(0.0003, 0.48 if number == 7 else 0.0012) for number in range(40)]
    return Conversation(drawn, 0.02).story().write(tmp_path)


def test_text_has_the_sentence_and_the_longest(conversation: Path) -> None:
    lines = tcpwin("exchanges", conversation, "--limit", 3).stdout.decode().splitlines()
    assert lines[0] == "40 exchanges on 1 connection."
    sentence = "The server took 1.2 ms (median), p95 1.2 ms, at most 480 ms (frame 20): 1 of 40 answers took 91 %"
    assert sentence in "".join(lines)
    assert "The 3 longest of 40:" in lines
    assert len(lines[lines.index("The 3 longest of 40:") + 1 :]) == 1 + 3


def test_every_format_has_the_same_rows(conversation: Path, tmp_path: Path) -> None:
    document = json.loads(tcpwin("exchanges", conversation, "--json").stdout)
    assert document["schema"] == "tcpwin/exchanges/1"
    assert (document["connections"], document["connections_omitted"], document["exchanges_omitted"]) == (1, 0, 0)
    [group] = document["groups"]
    assert (group["exchanges"], group["slow_exchanges"], group["work_max_frame"]) == (40, 1, 20)
    for form in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"out.{form}"
        assert tcpwin("exchanges", conversation, "-o", out).returncode == 0
        if form == "parquet":
            rows = polars.read_parquet(out).to_dicts()
        elif form == "jsonl":
            rows = [json.loads(line) for line in out.read_text().splitlines()]
        else:
            with out.open() as file:
                rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
        assert rows == document["exchanges"], form
        assert list(rows[0]) == list(EXCHANGE_COLUMNS)


def test_groups_are_written_by_name(tmp_path: Path) -> None:
    out = tmp_path / "groups.parquet"
    assert tcpwin("exchanges", MANY_SHORT, "--by", "host", "-o", out).returncode == 0
    groups = polars.read_parquet(out)
    document = json.loads(tcpwin("exchanges", MANY_SHORT, "--by", "host", "--json").stdout)
    assert groups["exchanges"].sum() == len(document["exchanges"]) == 60
    assert groups["text"].to_list() == [group["text"] for group in document["groups"]]


def test_one_connection_alone() -> None:
    document = json.loads(tcpwin("exchanges", MANY_SHORT, "--connection", 3, "--json").stdout)
    assert {row["connection"] for row in document["exchanges"]} == {3}
    assert document["by"] == "connection"


def test_http_paths_are_shown() -> None:
    assert "GET /file.bin at " in tcpwin("exchanges", HTTP, "--by", "path").stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((SLOW_READER, "--connection", 7), "no connection 7: the capture has 1"),
        ((SLOW_READER,), "no exchanges: neither side answers the other"),
        ((SLOW_READER, "--connection", 0), "no exchanges: on connection 0 neither side answers the other"),
    ],
)
def test_nothing_to_list_is_an_error(arguments: tuple[object, ...], said: str) -> None:
    assert said in refused("exchanges", *arguments)


def test_no_path_without_http(conversation: Path) -> None:
    assert "no HTTP request was captured" in refused("exchanges", conversation, "--by", "path")
