"""`tcpwin slice` and `tcpwin annotate`: selected packets, output, and refusals."""

import json
from pathlib import Path

import pytest
from cli.command import CAPTURES, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TEXT, refused, tcpwin

import tcpwin as library

BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"


def packets(path: Path) -> int:
    return library.analyze(path).capture.packets


def test_connections_of_a_capture(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    done = tcpwin("slice", MANY_SHORT, "--connection", 2, "--connection", 5, "-o", out)
    assert (done.returncode, done.stderr) == (0, b"")
    found = library.analyze(out)
    chosen = [library.analyze(MANY_SHORT).connections[number] for number in (2, 5)]
    assert [(each.a, each.b) for each in found] == [(each.a, each.b) for each in chosen]
    assert done.stdout.decode().startswith(f"{out}: {found.capture.packets} packets, ")


def test_a_span_is_counted_from_the_connection(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert tcpwin("slice", SLOW_READER, "--connection", 0, "--from", "10", "--to", "12s", "-o", out).returncode == 0
    assert tcpwin("slice", SLOW_READER, "--from", "10", "--to", "12s", "-o", tmp_path / "all.pcapng").returncode == 0
    # The capture begins with its only connection, so only the handshake is added.
    assert packets(out) == packets(tmp_path / "all.pcapng") + 3


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2026-11-21T02:01:35.796158Z", "2026-11-21 03:01:37.796158+01:00"),
        ("02:01:35.796158", "02:01:37.796158"),
        ("10", "02:01:37.796158"),
    ],
)
def test_a_span_by_date_and_time_of_day(tmp_path: Path, first: str, last: str) -> None:
    """The capture's first packet is at 2026-11-21T02:01:25.796158Z."""
    seconds, dates = tmp_path / "seconds.pcapng", tmp_path / "dates.pcapng"
    assert tcpwin("slice", SLOW_READER, "--from", "10", "--to", "12", "-o", seconds).returncode == 0
    assert tcpwin("slice", SLOW_READER, "--from", first, "--to", last, "-o", dates).returncode == 0
    assert packets(dates) == packets(seconds) > 0
    ended = refused("slice", SLOW_READER, "--from", "1h", "--to", last, "-o", dates, status=2)
    assert "--to is not after --from" in ended


def test_a_finding_is_printed_as_json(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    done = tcpwin("slice", SLOW_READER, "--finding", "zero-window-stall", "--around", 2, "--json", "-o", out)
    told = json.loads(done.stdout)
    assert told.keys() == {
        *("schema", "name", "file", "packets", "packets_cut", "packets_commented", "packets_skipped")
    }
    assert (told["schema"], told["file"], told["packets_cut"]) == ("tcpwin/slice/1", str(out), 0)
    assert told["packets"] == packets(out)


def test_headers_and_no_comments(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    done = tcpwin("slice", KEEP_ALIVE, "--connection", 0, "--headers-only", "--no-comments", "--json", "-o", out)
    assert json.loads(done.stdout)["packets_commented"] == 0
    assert b"tcpwin: " not in out.read_bytes()


def test_all_packets_of_several_files_in_time_order(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    done = tcpwin("annotate", SLOW_READER, KEEP_ALIVE, "--json", "-o", out)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["packets"] == packets(SLOW_READER) + packets(KEEP_ALIVE) == packets(out)


def test_standard_input_to_standard_output(tmp_path: Path) -> None:
    for command in (("annotate",), ("slice", "--connection", 0)):
        done = tcpwin(*command, "-", "-o", "-", input=KEEP_ALIVE.read_bytes())
        assert (done.returncode, done.stderr) == (0, b"")
        (tmp_path / "out.pcapng").write_bytes(done.stdout)
        assert packets(tmp_path / "out.pcapng") == packets(KEEP_ALIVE)


def test_a_bundle(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert tcpwin("annotate", BUNDLE, "-o", out).returncode == 0
    assert b"tcpwin: connection 0, " in out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("slice", KEEP_ALIVE), "--connection, --finding, or --from"),
        (("slice", KEEP_ALIVE, "--finding", "TW201", "--from", "1"), "--finding"),
        (("slice", KEEP_ALIVE, "--connection", 0, "--around", 3), "--around"),
        (("slice", KEEP_ALIVE, "--from", "2", "--to", "1"), "--to is not after"),
        (("slice", KEEP_ALIVE, "--from", "soon"), "soon"),
        (("slice", KEEP_ALIVE, "--finding", "TW999"), "TW999"),
    ],
)
def test_wrong_usage(arguments: tuple[object, ...], words: str, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert words in refused(*arguments, "-o", out, status=2)
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("slice", KEEP_ALIVE, "--connection", 9), "no connection 9"),
        (("slice", KEEP_ALIVE, "--from", "300h"), "no packet"),
        (("slice", KEEP_ALIVE, "--finding", "TW201"), "TW201 found nothing"),
        (("annotate", TEXT), "not a pcap"),
    ],
)
def test_output_that_cannot_be_written(arguments: tuple[object, ...], words: str, tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    assert words in refused(*arguments, "-o", out)
    assert not out.exists()


def test_the_capture_itself_is_not_written_over(tmp_path: Path) -> None:
    capture = tmp_path / "in.pcap"
    capture.write_bytes(KEEP_ALIVE.read_bytes())
    assert tcpwin("annotate", capture, "-o", capture).returncode == 2
    assert capture.read_bytes() == KEEP_ALIVE.read_bytes()


def test_a_full_disk_is_one_sentence() -> None:
    assert "/dev/full" in refused("annotate", KEEP_ALIVE, "-o", "/dev/full")
