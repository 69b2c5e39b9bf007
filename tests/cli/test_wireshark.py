"""`tcpwin wireshark`: files written and refusals; `tests/report/wireshark` uses the real tshark."""

import json
import shutil
from pathlib import Path

import pytest
from cli.command import KEEP_ALIVE, MANY_SHORT, TEXT, refused, tcpwin


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("BROWSER", "true %s")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return Path(shutil.copy(KEEP_ALIVE, tmp_path))


def test_an_index_is_written_next_to_its_capture(capture: Path) -> None:
    done = tcpwin("wireshark", "index", capture)
    assert done.stdout.decode() == f"{capture}.tcpwin: 21 packets, 1 connection\n"
    assert done.stderr == b""


def test_several_captures_and_json(capture: Path, tmp_path: Path) -> None:
    other = Path(shutil.copy(MANY_SHORT, tmp_path))
    told = json.loads(tcpwin("wireshark", "index", capture, other, "--json").stdout)
    assert told["schema"] == "tcpwin/wireshark-index/1"
    assert [each["file"] for each in told["indexes"]] == [f"{capture}.tcpwin", f"{other}.tcpwin"]
    assert told["indexes"][0]["packets"] == 21


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((KEEP_ALIVE, MANY_SHORT, "-o", "out"), "-o is for one capture"), (("absent.pcap",), "absent.pcap")],
)
def test_wrong_usage(arguments: tuple[object, ...], words: str) -> None:
    assert words in refused("wireshark", "index", *arguments, status=2)


def test_no_capture_is_written_over(capture: Path) -> None:
    before = capture.read_bytes()
    assert "is also an input file" in refused("wireshark", "index", capture, "-o", capture, status=2)
    assert "not a pcap" in refused("wireshark", "index", TEXT, "-o", capture)
    assert capture.read_bytes() == before


def test_a_connection_is_opened(capture: Path, tmp_path: Path) -> None:
    tcpwin("wireshark", "index", capture)
    moved = tmp_path / "moved"
    moved.mkdir()
    for path in (capture, Path(f"{capture}.tcpwin")):
        path.rename(moved / path.name)
    done = tcpwin("wireshark", "open", moved / f"{capture.name}.tcpwin", 0)
    assert done.returncode == 0, done.stderr
    assert "<html" in Path(done.stdout.decode().strip()).read_text(encoding="utf8")


def test_captures_that_cannot_be_opened(capture: Path) -> None:
    index = Path(f"{capture}.tcpwin")
    tcpwin("wireshark", "index", capture)
    assert "is not a tcpwin index" in refused("wireshark", "open", capture, 0)
    assert "no connection 7: the capture has 1" in refused("wireshark", "open", index, 7)
    whole = index.read_bytes()
    for data, words in (
        (whole[:13] + b"9" + whole[14:], "another version"),
        (whole[:60], "is damaged"),
        (whole[:50] + b"!" + whole[51:], "is damaged"),
        (whole[:24] + b"!" + whole[25:], "is damaged"),
    ):
        index.write_bytes(data)
        assert words in refused("wireshark", "open", index, 0)
    index.write_bytes(whole)
    capture.write_bytes(capture.read_bytes() + b"more")
    assert "changed since it was indexed" in refused("wireshark", "open", index, 0)
    capture.unlink()
    assert "which is gone" in refused("wireshark", "open", index, 0)


def test_the_plugin_is_printed_or_written(tmp_path: Path) -> None:
    printed = tcpwin("wireshark", "install", "--print").stdout
    assert b"@" not in printed.partition(b"Proto(")[0]
    done = tcpwin("wireshark", "install", "--to", tmp_path / "plugins")
    assert done.stdout.decode().startswith(f"{tmp_path / 'plugins' / 'tcpwin.lua'}: ")
    assert (tmp_path / "plugins" / "tcpwin.lua").read_bytes() == printed
    assert "exclude" in refused("wireshark", "install", "--print", "--to", tmp_path, status=2)


def test_only_the_newest_indexes_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tcpwin.render.wireshark import make_known, plugin

    monkeypatch.setattr(plugin, "MOST_KNOWN", 3)
    for second in range(5):
        make_known(tmp_path / str(second), second * 1_000_000_000)
    assert len(list((tmp_path / "cache" / "tcpwin" / "wireshark").iterdir())) == 3
