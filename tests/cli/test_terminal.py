"""Output of `analyze` and `check` on a terminal and in a pipe: the same text, coloured and wrapped only on the
terminal.
"""

import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import forked
import pytest
from cases import all_cases
from cli.command import CAPTURES, MANY_SHORT, SLOW_READER, TCPWIN
from live import HANG_S
from spread import some_by_day

LOSSY = CAPTURES / "lab" / "loss-1-percent.pcap.gz"
STALL = CAPTURES / "lab" / "zero-window-stall.pcap.gz"
SEVERAL = (SLOW_READER, LOSSY, STALL, MANY_SHORT)
ANSI = re.compile(r"\x1b\[[\d;]*m")
HEAD = re.compile(r" *id  client → server +limited by +share +cost +bytes +rate +RTT")


def on_terminal(*arguments: object, columns: int = 120, has_input: bool = False, **environment: str) -> str:
    """Return the output on a terminal with this many columns."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    plain = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "LESS")
    }
    child = forked.start(
        [TCPWIN, *map(str, arguments)],
        stdin=theirs if has_input else subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**plain, "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    told = b""
    while True:
        try:
            read = os.read(ours, 65536)
        except OSError:
            # Linux's error when no process has the other end open.
            break
        if not read:
            break
        told += read
    os.close(ours)
    _, said = child.communicate(timeout=HANG_S)
    assert b"Traceback" not in said
    return told.decode().replace("\r\n", "\n")


def in_pipe(*arguments: object) -> str:
    return forked.run(
        [TCPWIN, *map(str, arguments)], capture_output=True, timeout=HANG_S, check=False, env={**os.environ}
    ).stdout.decode()


def joined(text: str) -> str:
    return re.sub(r"\s+", " ", ANSI.sub("", text)).strip()


@pytest.mark.parametrize("command", ["analyze", "check"])
def test_a_terminal_has_colour_and_no_line_beyond_its_width(command: str) -> None:
    text = on_terminal(command, SLOW_READER, columns=72)
    assert ANSI.search(text)
    assert max(len(ANSI.sub("", line)) for line in text.splitlines()) <= 72
    assert joined(text) == joined(in_pipe(command, SLOW_READER))


RUN = CAPTURES / "runs" / "loss1_cubic_sack1"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "arguments",
    [("compare", STALL, LOSSY), ("pair", RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz")],
    ids=["compare", "pair"],
)
def test_two_captures_are_coloured_as_well(arguments: tuple[str, ...]) -> None:
    text = on_terminal(*arguments, columns=72)
    assert ANSI.search(text)
    assert max(len(ANSI.sub("", line)) for line in text.splitlines()) <= 72
    assert joined(text) == joined(in_pipe(*arguments))
    assert "\x1b" not in in_pipe(*arguments)
    assert "\x1b" not in on_terminal(*arguments, NO_COLOR="1")


SLOW_SOCKETS = CAPTURES / "bundles" / "slow-reader.zip"


@pytest.mark.nightly
@all_cases(
    "arguments",
    [
        ("whatif", SLOW_READER),
        ("reference", "--like", CAPTURES / "lab" / "receive-buffer-64k.pcap.gz"),
        ("reference", "--rtt", "300ms"),
        ("ss", SLOW_SOCKETS),
        ("ss", "--distribution", "all", SLOW_SOCKETS),
    ],
    ids=lambda arguments: "-".join(map(str, arguments[:2])).split("/")[0],
)
def test_additional_output_is_coloured_as_well(arguments: tuple[str, ...]) -> None:
    text = on_terminal(*arguments, columns=80)
    assert ANSI.search(text)
    assert max(len(ANSI.sub("", line)) for line in text.splitlines()) <= 80
    assert joined(text) == joined(in_pipe(*arguments))
    assert "\x1b" not in in_pipe(*arguments)
    assert ANSI.search(in_pipe(*arguments, "--color", "always"))
    assert "\x1b" not in on_terminal(*arguments, NO_COLOR="1")


def test_sockets_without_a_time_have_the_same_heads(tmp_path: Path) -> None:
    """A table pasted from a mail has no time before it."""
    path = tmp_path / "ss.txt"
    path.write_text("> State Recv-Q Send-Q Local Address:Port Peer Address:Port\n> ESTAB 0 0 10.0.0.1:443 10.0.0.2:5\n")
    head = in_pipe("ss", path, "--color", "always").splitlines()[0]
    assert ANSI.sub("", head).split() == ["state", "local", "peer"]
    assert ANSI.search(head)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colour_gets_none(environment: dict[str, str]) -> None:
    for arguments in ((SLOW_READER,), SEVERAL):
        text = on_terminal("analyze", *arguments, columns=72, **environment)
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 72


def test_colour_as_asked_for() -> None:
    assert "\x1b" not in on_terminal("analyze", SLOW_READER, "--color", "never")
    assert "\x1b" in in_pipe("analyze", SLOW_READER, "--color", "always")
    assert "\x1b" in on_terminal("analyze", SLOW_READER, "--color", "always", NO_COLOR="1")


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe_where_it_is_forced(environment: dict[str, str], is_coloured: bool) -> None:
    done = forked.run(
        [TCPWIN, "analyze", SLOW_READER], capture_output=True, timeout=HANG_S, check=True, env=os.environ | environment
    )
    assert (b"\x1b[" in done.stdout) == is_coloured
    if not is_coloured:
        assert done.stdout.decode() == in_pipe("analyze", SLOW_READER)


@pytest.mark.parametrize(
    ("arguments", "is_paged"), [(("explain", "TW201"), True), (("fields",), True), (("explain", "TW999"), False)]
)
def test_a_long_page_goes_through_the_pager(arguments: tuple[str, ...], is_paged: bool, tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "paged with $LESS"\ncat\n')
    pager.chmod(0o755)
    text = on_terminal(*arguments, PAGER=str(pager), has_input=True)
    assert text.startswith("paged with FRX\n") == is_paged
    if is_paged:
        assert text.partition("\n")[2] == in_pipe(*arguments)
        assert "paged" not in on_terminal(*arguments, PAGER=str(pager))


@pytest.mark.parametrize("arguments", [("analyze", *SEVERAL), ("check", *SEVERAL), ("analyze", SLOW_READER)])
def test_a_pipe_gets_plain_text(arguments: tuple[str, ...]) -> None:
    text = in_pipe(*arguments)
    assert "\x1b" not in text
    assert not any("\u2500" <= character <= "\u257f" for character in text)


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of the table of connections."""
    lines = ANSI.sub("", text).splitlines()
    start = next(place for place, line in enumerate(lines) if HEAD.fullmatch(line.rstrip()))
    rows = lines[start + 1 : lines.index("", start)]
    return [re.split(r"  +", row.strip()) for row in rows if " more connections " not in row]


@pytest.mark.parametrize("say", [in_pipe, on_terminal], ids=["pipe", "terminal"])
@pytest.mark.parametrize("command", some_by_day(["analyze", "check"], of=2))
def test_several_connections_stand_in_a_table_the_costliest_first(command: str, say: object) -> None:
    """The slow reader lost most, then the lossy path, then the stall of 4.14 s; 65 short connections lost nothing."""
    assert callable(say)
    rows = rows_of(say(command, *SEVERAL, "--merge"))
    assert [row[1] for row in rows[:3]] == [
        "10.9.2.2:36984 → 10.9.1.1:5201",
        "10.9.2.2:38102 → 10.9.1.1:5201",
        "10.9.2.2:40038 → 10.9.1.1:5201",
    ]
    assert [row[2] for row in rows[:3]] == ["slow reader", "loss on the path", "slow reader"]
    # About 28.1 s for the slow reader: its details give the bounds.
    assert [row[4][0] for row in rows[:3]] == ["~", "~", "~"]
    costs = [float(row[4].lstrip("≤~ ").removesuffix(" s")) for row in rows[:3]]
    assert costs == sorted(costs, reverse=True)
    assert [row[5] for row in rows[:3]] == ["6 MB", "8 MB", "20 MB"]
    # Round trips configured for the lab's paths: 40, 50 and 40 ms.
    assert [row[7] for row in rows[:3]] == ["40 ms", "50 ms", "40 ms"]
    # `check` lists only problems; `analyze` as many as it shows.
    assert len(rows) == (3 if command == "check" else 10)
    assert all(row[4] == "-" for row in rows[3:])


def test_the_table_is_as_long_as_the_limit() -> None:
    said = in_pipe("analyze", *SEVERAL, "--merge", "--limit", 2)
    assert len(rows_of(said)) == 2
    assert "\n66 more connections not shown: --limit N" in said
    assert not any(HEAD.match(line) for line in in_pipe("analyze", SLOW_READER).splitlines())


def test_rich_is_loaded_for_a_terminal_only(tmp_path: Path) -> None:
    code = (
        "import sys; from tcpwin.cli import main; sys.argv = ['tcpwin', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\nsys.exit('rich' in sys.modules)"
    )
    for arguments in (["--version"], ["analyze", str(SLOW_READER)]):
        done = subprocess.run(
            [TCPWIN.with_name("python"), "-c", code, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 0
