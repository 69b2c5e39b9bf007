"""The Wireshark plugin in the real tshark: its fields equal tcpwin's results, and it refuses an index of another
capture.
"""

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import forked
import pytest
from analysis.bundled import CAPTURES, WHOLE, name_of, plain_bytes
from cases import all_cases
from cli.command import TCPWIN
from live import HANG_S
from spread import some_by_day

import tcpwin
from tcpwin.render.wireshark import default_folder

SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
LOSS = CAPTURES / "lab" / "loss-1-percent.pcap.gz"
KEEP_ALIVE = CAPTURES / "wild" / "keep-alive.pcap"
AGAIN = "Write it again: tcpwin wireshark index CAPTURE"
PER_PACKET = ("frame.number", "connection", "direction", "flight", "window", "rtt", "cause", "event", "finding")
PER_CONNECTION = ("limit", "second_limit", "share", "confidence", "owner", "cost", "verdict", "fix")


class Desk:
    """A user's home with the installed plugin, and captures."""

    def __init__(self, home: Path, tshark: str) -> None:
        self.home = home
        self.tshark = tshark
        hidden = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "WIRESHARK_CONFIG_DIR")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}
        self.environment |= {"HOME": str(home)}
        assert self.run(TCPWIN, "wireshark", "install").returncode == 0

    def run(self, *command: object, **more: str) -> subprocess.CompletedProcess[str]:
        run = forked.run if command[0] == TCPWIN else subprocess.run
        return run(
            [str(each) for each in command],
            env=self.environment | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def read(self, capture: Path, *options: object) -> subprocess.CompletedProcess[str]:
        return self.run(self.tshark, "-n", "-r", capture, *options)

    def fields(self, capture: Path, names: tuple[str, ...], *options: object) -> list[list[str]]:
        full = (name if "." in name else f"tcpwin.{name}" for name in names)
        chosen = [part for name in full for part in ("-e", name)]
        done = self.read(capture, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=,", *chosen, *options)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def index(self, capture: Path, *options: object) -> Path:
        done = self.run(TCPWIN, "wireshark", "index", capture, *options)
        assert done.returncode == 0, done.stderr
        return capture.with_name(f"{capture.name}.tcpwin")

    def take(self, capture: Path, tool: Callable[[str], str]) -> Path:
        """Copy a capture in a form that every tshark can read."""
        plain = self.home / capture.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".lz4")
        plain.write_bytes(plain_bytes(capture, tool))
        return plain

    def problem(self, capture: Path, *options: object) -> tuple[int, str, str]:
        """Return the frame and text of a problem with the index, and the lines on standard error."""
        [[frame, problem]] = self.fields(capture, ("frame.number", "problem"), "-Y", "tcpwin.problem", *options)
        said = [line for line in self.read(capture, *options).stderr.splitlines() if "tcpwin" in line]
        return int(frame), problem, "\n".join(said)


@pytest.fixture
def desk(tmp_path: Path, tool: Callable[[str], str]) -> Desk:
    return Desk(tmp_path, tool("tshark"))


def seconds(ns: int) -> str:
    return f"{ns // 1_000_000_000}.{ns % 1_000_000_000 // 1000 * 1000:09}"


def expected(analysis: tcpwin.Analysis) -> Iterator[list[str]]:
    """Yield the fields of each TCP frame, as computed in Python."""
    codes: dict[int, list[str]] = {}
    for finding in analysis.findings:
        for frame in set(finding.evidence.frames):
            if finding.code not in codes.setdefault(frame, []):
                codes[frame].append(finding.code)
    causes = {event.frame: event.cause for connection in analysis for event in connection.events}
    seen = set()
    for row in analysis.segments().rows():
        if row["frame"] not in seen:
            seen.add(row["frame"])
            yield [
                str(row["frame"]),
                str(row["connection"]),
                "a_to_b" if row["direction"] == "a" else "b_to_a",
                *("" if row[name] is None else str(row[name]) for name in ("bytes_in_flight", "window")),
                "" if row["rtt_ns"] is None else seconds(row["rtt_ns"]),
                causes.get(row["frame"]) or "",
                row["events"].replace("|", ","),
                ",".join(codes.get(row["frame"], ())),
            ]


@pytest.mark.parametrize("capture", some_by_day(WHOLE, of=12), ids=name_of)
def test_fields_say_what_python_says(capture: Path, desk: Desk, tool: Callable[[str], str]) -> None:
    plain = desk.take(capture, tool)
    before = plain.read_bytes()
    desk.index(plain)
    assert plain.read_bytes() == before
    analysis = tcpwin.analyze(plain)
    assert desk.fields(plain, PER_PACKET, "-Y", "tcpwin.connection") == list(expected(analysis))
    told: dict[str, list[str]] = {}
    for number, *values in desk.fields(plain, ("connection", *PER_CONNECTION), "-Y", "tcpwin.connection"):
        assert told.setdefault(number, values) == values
    assert len(told) == len(analysis)
    for connection in analysis:
        verdict = connection.verdict
        limit, second, share, confidence, owner, cost, words, fix = told[str(connection.id)]
        assert (limit, second or None, confidence) == (verdict.limit, verdict.second_limit, verdict.confidence)
        assert (owner, words) == (verdict.owner, verdict.answer)
        assert float(share) == pytest.approx(verdict.share, abs=1e-4)
        assert cost == seconds(verdict.cost_ns)
        assert fix == (verdict.fix if verdict.is_problem else "")


def test_display_filters_and_statistics(desk: Desk, tool: Callable[[str], str]) -> None:
    plain = desk.take(SLOW_READER, tool)
    desk.index(plain)
    analysis = tcpwin.analyze(plain)
    rows = list(analysis.segments().rows())
    closed = [row["frame"] for row in rows if "zero_window" in row["events"].split("|")]
    display = 'tcpwin.limit == "receiver_application" && tcpwin.event == "zero_window" && tcpwin.cost > 20'
    assert [int(row[0]) for row in desk.fields(plain, ("frame.number",), "-Y", display)] == closed
    assert not desk.fields(plain, ("frame.number",), "-Y", 'tcpwin.limit == "path_loss"')
    done = desk.read(plain, "-q", "-z", "io,stat,0,MAX(tcpwin.flight)tcpwin.flight,COUNT(tcpwin.window)tcpwin.window")
    [line] = [line for line in done.stdout.splitlines() if "<>" in line]
    most = max(row["bytes_in_flight"] or 0 for row in rows)
    assert [int(cell) for cell in line.split("|")[2:4]] == [most, sum(row["window"] is not None for row in rows)]
    column = '-ogui.column.format:"Limit","%Cus:tcpwin.limit:0:R"'
    assert desk.read(plain, column, "-c", "1").stdout.strip() == "receiver_application"


def test_a_missing_index_is_reported_in_the_first_packet_only(desk: Desk) -> None:
    sentence = "this capture has no index. Write it: tcpwin wireshark index CAPTURE"
    assert desk.problem(KEEP_ALIVE) == (1, sentence, "")
    shutil.copy(KEEP_ALIVE, desk.home)
    index = desk.index(desk.home / KEEP_ALIVE.name)
    assert desk.fields(KEEP_ALIVE, ("problem",), "-Y", "tcpwin.problem") == []
    index.unlink()
    assert desk.problem(KEEP_ALIVE)[1] == sentence


@pytest.mark.nightly
def test_an_index_is_named_by_a_preference(desk: Desk) -> None:
    shutil.copy(KEEP_ALIVE, desk.home)
    index = desk.index(desk.home / KEEP_ALIVE.name)
    shutil.rmtree(desk.home / ".cache")
    option = f"-otcpwin.index:{index}"
    assert len(desk.fields(KEEP_ALIVE, ("limit",), "-Y", "tcpwin.limit", option)) > 1
    gone = desk.home / "gone"
    frame, sentence, said = desk.problem(KEEP_ALIVE, f"-otcpwin.index:{gone}")
    assert (frame, sentence) == (1, f"there is no index {gone}. Write it: tcpwin wireshark index CAPTURE")
    assert said == f"tshark: tcpwin: {sentence}"


@pytest.mark.nightly
def test_the_index_of_another_capture_is_not_believed(desk: Desk, tool: Callable[[str], str]) -> None:
    plain = desk.take(LOSS, tool)
    index = desk.index(plain)
    other = desk.home / "other.pcap"
    assert desk.read(plain, "-Y", "frame.number != 298", "-w", other).returncode == 0
    frame, sentence, said = desk.problem(other)
    assert frame == 298
    assert (
        sentence == f"{index} is of another capture: packet 298 differs. Write it again: tcpwin wireshark index CAPTURE"
    )
    assert said == f"tshark: tcpwin: {sentence}"
    assert all(int(row[0]) < 298 for row in desk.fields(other, ("frame.number",), "-Y", "tcpwin.connection"))


def test_a_capture_that_grew(desk: Desk, tool: Callable[[str], str]) -> None:
    plain = desk.take(LOSS, tool)
    data = plain.read_bytes()
    place = 24
    for _ in range(700):
        place += 16 + struct.unpack_from("<I", data, place + 8)[0]
    plain.write_bytes(data[:place])
    index = desk.index(plain)
    plain.write_bytes(data)
    frame, sentence, _ = desk.problem(plain)
    assert frame == 701
    assert sentence.startswith(f"{index} ends at packet 700, and the capture does not. ")


@all_cases(
    ("spoil", "words"),
    [
        (lambda _: b"a text\n" * 10, "is not a tcpwin index"),
        (lambda data: data[:13] + b"2" + data[14:], "is an index of another version of tcpwin"),
        (lambda data: data[:30], "is not a tcpwin index"),
        (lambda _: b"", "is not a tcpwin index"),
        (lambda data: data[:-1], "is damaged"),
        (lambda data: data + b"\0", "is damaged"),
        (lambda data: data[:20] + b"\xff\xff\xff\xff" + data[24:], "is damaged"),
    ],
)
def test_invalid_indexes(spoil: Callable[[bytes], bytes], words: str, desk: Desk) -> None:
    shutil.copy(KEEP_ALIVE, desk.home)
    index = desk.index(desk.home / KEEP_ALIVE.name)
    index.write_bytes(spoil(index.read_bytes()))
    frame, sentence, said = desk.problem(KEEP_ALIVE)
    assert frame == 1
    assert sentence == f"{index} {words}. {AGAIN}"
    assert said == f"tshark: tcpwin: {sentence}"


@pytest.mark.parametrize("count", [4, pytest.param(12, marks=pytest.mark.nightly)])
def test_damage_anywhere_is_noticed_before_it_is_shown(desk: Desk, count: int) -> None:
    shutil.copy(KEEP_ALIVE, desk.home)
    index = desk.index(desk.home / KEEP_ALIVE.name)
    whole = index.read_bytes()
    names = ("frame.number", *PER_PACKET[1:], *PER_CONNECTION)
    right = desk.fields(KEEP_ALIVE, names)
    rng = random.Random(22)
    for _ in range(count):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        index.write_bytes(data)
        done = desk.read(KEEP_ALIVE)
        assert "Lua Error" not in done.stdout
        said = [line for line in done.stderr.splitlines() if "tcpwin" in line]
        assert len(said) == 1
        assert said[0].startswith(f"tshark: tcpwin: {index} is ")
        for got, wanted in zip(desk.fields(KEEP_ALIVE, names), right, strict=True):
            # Values shown before the damage was detected are right, except at the frame that detected it.
            assert got == wanted or not any(got[2:])


MENU = """
local items = {}
function _G.register_packet_menu(name, action, needed) items[needed] = { name, action } end
local function press(name, value)
    items[name][2]({ name = "frame.number", value = 7 }, { name = name, value = value })
end
local tap = Listener.new("frame", "frame.number == 1")
function tap.draw() press("tcpwin.connection", 0) end
"""


def test_the_menu_opens_the_connection(desk: Desk) -> None:
    """tshark has no menus, so another script replaces Wireshark's and triggers the plugin's item."""
    folder = desk.home / "it's a folder"
    folder.mkdir()
    shutil.copy(KEEP_ALIVE, folder)
    desk.index(folder / KEEP_ALIVE.name)
    (desk.home / "menu.lua").write_text(MENU)
    printed = desk.run(TCPWIN, "wireshark", "install", "--print")
    (desk.home / "again.lua").write_text(printed.stdout)
    # Scripts that Wireshark loads automatically come before a named one.
    (default_of(desk) / "tcpwin.lua").unlink()
    seen = desk.home / "seen"
    browser = desk.home / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part && mv {seen}.part {seen}\n')
    browser.chmod(0o755)
    scripts = (f"-Xlua_script:{desk.home / each}" for each in ("menu.lua", "again.lua"))
    done = desk.run(desk.tshark, "-n", "-r", KEEP_ALIVE, *scripts, BROWSER=f"{browser} %s", TMPDIR=str(desk.home))
    # The command that the item starts holds tshark's standard output open: it has ended.
    assert done.returncode == 0, done.stderr
    page = Path(seen.read_text().removeprefix("file://"))
    assert page.name == "connection-0.html"
    assert page.read_text(encoding="utf8").startswith("<!DOCTYPE html>")


def default_of(desk: Desk) -> Path:
    return desk.home / default_folder().relative_to(Path.home())


def test_the_plugin_is_installed_where_wireshark_looks(desk: Desk) -> None:
    folders = dict(
        line.split(":\t") for line in desk.run(desk.tshark, "-G", "folders").stdout.splitlines() if ":\t" in line
    )
    assert Path(folders["Personal Lua Plugins"].strip()) == default_of(desk)
    assert [path.name for path in default_of(desk).iterdir()] == ["tcpwin.lua"]
