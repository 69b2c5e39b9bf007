"""Files written by commands and the library are complete or absent, and a failure keeps the previous file."""

from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from cli.command import CAPTURES, MANY_SHORT, SLOW_READER, TCPWIN, refused, tcpwin
from live import HANG_S, until
from reference import AS_ROOT
from report.figures.drawn import connection
from spread import some_by_day

from tcpwin.cli.program import COMMANDS, cli
from tcpwin.errors import OutputError
from tcpwin.figures.drawing.export import write
from tcpwin.output import append_whole, open_whole

ROOM_BYTES = 256
FULL = Path("/dev/full")
RUN = CAPTURES / "runs" / "loss1_cubic_sack1"
SOCKETS = RUN / "ss_snd.txt"

WRITERS: dict[tuple[str, str], list[tuple[object, ...]]] = {
    ("annotate", "out"): [(SLOW_READER, "-o", "out.pcapng")],
    ("check", "out"): [(SLOW_READER, "-o", "out.json"), (SLOW_READER, "-o", "out.sarif")],
    ("check", "write_baseline"): [(SLOW_READER, "--write-baseline", "out.json")],
    ("exchanges", "out"): [(MANY_SHORT, "-o", f"out.{form}") for form in ("csv", "jsonl", "parquet")],
    ("fleet run", "dataset"): [],
    ("lab library", "output"): [],
    ("lab lift", "output"): [],
    ("lab run", "output"): [],
    ("lab worlds", "output"): [],
    ("nstat", "out"): [(RUN / "nstat_snd.csv", "-o", "out.csv")],
    ("packets", "out"): [(SLOW_READER, "-o", f"out.{form}") for form in ("csv", "jsonl", "parquet")],
    ("pair", "figure"): [(RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz", "-o", f"out.{form}") for form in ("html", "json")],
    ("pair", "out"): [(RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz", "--packets", "out.parquet")],
    ("plot", "out"): [(SLOW_READER, "-o", f"out.{form}") for form in ("html", "json", "png")],
    ("report", "out"): [(SLOW_READER, "-o", f"out.{form}") for form in ("html", "md", "json", "pdf")],
    ("slice", "out"): [(SLOW_READER, "--connection", 0, "-o", "out.pcapng")],
    ("snap", "out"): [],
    ("watch", "out"): [],
    ("ss", "out"): [(SOCKETS, "-o", f"out.{form}") for form in ("csv", "json", "jsonl", "parquet", "arrow")],
    ("wireshark index", "out"): [(SLOW_READER, "-o", "out.tcpwin")],
}
"""Each command's options that name an output file, and input that produces more than fits.

Other outputs are tested elsewhere: bundles in `tests/lab/test_bundle_writing.py` and `tests/watch`, data sets in
`tests/fleet`, `snap` in `tests/hosts/collect`; sweeps append lines (below).
"""


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Limit the size of files, so that writing fails as on a full disk."""
    # Python would load a partially written compiled module.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def options_that_write(group: click.Group, above: str = "") -> Iterator[tuple[str, str]]:
    context = click.Context(group)
    for name in COMMANDS if group is cli else group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from options_that_write(command, f"{above}{name} ")
            continue
        assert command is not None
        for option in command.params:
            writes = {"-o", "--output", "--packets", "--write-baseline"} & {*option.opts}
            if writes:
                yield f"{above}{name}", str(option.name)


def test_each_option_that_writes_is_tested() -> None:
    assert sorted(set(options_that_write(cli))) == sorted(WRITERS)  # type: ignore[arg-type]


PRINTED = ("out.png", "out.pdf")
"""Written by a browser, whose files exceed the limit."""
ASKED = [
    (*name.split(), *arguments)
    for (name, _), calls in WRITERS.items()
    for arguments in calls
    if arguments[-1] not in PRINTED
]


@pytest.mark.parametrize("arguments", ASKED, ids=lambda call: f"{call[0]}-{call[-1]}")
def test_a_full_disk_leaves_no_half(
    arguments: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = b"of yesterday"
    out = Path(str(arguments[-1]))
    if out.suffix:
        out.write_bytes(before)
    request.getfixturevalue("full_disk")
    done = tcpwin(*arguments)
    if done.returncode in (0, 1) and out.stat().st_size <= ROOM_BYTES:
        pytest.fail(f"{out} is too small to fill the disk")
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(b"tcpwin: out")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == before


class Interrupting:
    """Send Ctrl-C when this process performs a given operation on an incomplete file."""

    def __init__(self) -> None:
        self.at = ""
        self.has_come = False
        # An audit hook lasts as long as the process (sys.addaudithook).
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        # A new file gets the owner of the previous one through its descriptor (fchown(2)).
        if self.at == event and (".tcpwin-" in str(arguments[0]) or event == "os.chown"):
            self.at, self.has_come = "", True
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def interrupting() -> Interrupting:
    return Interrupting()


@pytest.fixture
def ctrl_c(interrupting: Interrupting) -> Iterator[Interrupting]:
    # Tests started in the background of a shell ignore SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield interrupting
    interrupting.at, interrupting.has_come = "", False
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("at", some_by_day(["open", "os.chown", "os.rename"], first=2))
@pytest.mark.parametrize("arguments", ASKED, ids=lambda call: f"{call[0]}-{call[-1]}")
def test_ctrl_c_leaves_no_half(
    arguments: tuple[object, ...], at: str, ctrl_c: Interrupting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt while the temporary file is created, just after that, and during the rename."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    out = Path(str(arguments[-1]))
    out.write_bytes(b"of yesterday")
    ctrl_c.at = at
    done = tcpwin(*arguments)
    assert ctrl_c.has_come
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, b"tcpwin: interrupted")
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_bytes() == b"of yesterday"


@pytest.mark.usefixtures("full_disk")
@pytest.mark.parametrize("form", ["html", "json"])
def test_nor_half_of_a_figure(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"window.{form}"
    figure = connection(SLOW_READER).figure("window")
    with pytest.raises(OutputError, match=rf"^{path}: "):
        write(figure, str(path), title="")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_the_old_file(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"of yesterday")
    command = [TCPWIN, "packets", "-", "-o", out]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(SLOW_READER.read_bytes()[:200])
        process.stdin.flush()
        until(lambda: list(tmp_path.glob(".tcpwin-*.part")))
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        assert process.wait(HANG_S) == 130
        assert process.stderr.read().strip() == b"tcpwin: interrupted"
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert out.read_bytes() == b"of yesterday"


def test_a_reader_who_leaves_takes_no_file_along(tmp_path: Path) -> None:
    """The reader closes standard output, but the file written by the same command is complete."""
    out = tmp_path / "out.parquet"
    read, write_end = os.pipe()
    os.close(read)
    command = [TCPWIN, "pair", RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz", "--packets", out]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")
    whole = tmp_path / "whole.parquet"
    assert tcpwin(*command[1:-1], whole).returncode == 0
    assert out.read_bytes() == whole.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupt_leaves_none_either(tmp_path: Path) -> None:
    def write_half() -> None:
        with open_whole(tmp_path / "report.md") as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_device_stays() -> None:
    with pytest.raises(OutputError, match=rf"^{FULL}: "), open_whole(FULL) as file:
        file.write("more than it takes")
    assert FULL.exists()


def test_open_files_are_written_directly(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    with out.open("wb") as file:
        command = [TCPWIN, "report", SLOW_READER, "--format", "json", "-o", "/dev/stdout"]
        subprocess.run(command, stdout=file, timeout=HANG_S, check=True)
    assert out.read_bytes().startswith(b"{")


def test_unopenable_files_are_not_deleted(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="Is a directory"), open_whole(tmp_path):
        pass
    assert tmp_path.exists()
    with pytest.raises(OutputError, match=r"/none/out: No such file or directory$"), open_whole(tmp_path / "none/out"):
        pass


def fill(path: Path) -> None:
    with open_whole(path) as file:
        file.write("new")


def test_a_link_goes_on_naming_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    kept = tmp_path / "folder" / "kept"
    link = tmp_path / "link"
    link.symlink_to(kept)
    fill(link)
    kept.chmod(0o640)
    fill(link)
    assert link.is_symlink()
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == ("new", 0o640)


def test_a_new_file_has_the_permissions_of_any(tmp_path: Path) -> None:
    fill(tmp_path / "new")
    (tmp_path / "any").touch()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason=f"{AS_ROOT}, which may write everywhere")
@pytest.mark.parametrize("prepare", [lambda path: path.chmod(0o444), lambda path: path.parent.chmod(0o555)])
def test_protected_files_are_refused_or_written_in_place(tmp_path: Path, prepare: Callable[[Path], None]) -> None:
    """A read-only file stays; a file in a folder that allows no new files is written in place."""
    path = tmp_path / "file"
    path.write_text("old")
    prepare(path)
    if os.access(path, os.W_OK):
        fill(path)
        assert path.read_text() == "new"
    else:
        with pytest.raises(OutputError, match="Permission denied"):
            fill(path)
        assert path.read_text() == "old"
    tmp_path.chmod(0o755)


@pytest.mark.usefixtures("full_disk")
def test_a_line_is_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_whole(path, "first\n")
    with pytest.raises(OSError, match="File too large"):
        append_whole(path, "x" * ROOM_BYTES)
    append_whole(path, "second\n")
    assert path.read_text() == "first\nsecond\n"


def test_write_errors_are_reported(tmp_path: Path) -> None:
    assert refused("packets", SLOW_READER, "-o", tmp_path / "none" / "out.csv").endswith(
        "/none/out.csv: No such file or directory\n"
    )


PRINTERS: dict[str, tuple[object, ...]] = {
    "analyze": (SLOW_READER, "--json"),
    "annotate": (SLOW_READER, "-o", "-"),
    "bdp": ("--rate", "100Mbit", "--rtt", "20ms"),
    "check": (SLOW_READER,),
    "compare": (SLOW_READER, SLOW_READER),
    "doctor": (),
    "exchanges": (CAPTURES / "wild" / "http-download.pcapng",),
    "explain": ("TW202",),
    "fields": (),
    "fleet run": ("--help",),
    "fleet show": ("--help",),
    "fleet sql": ("--help",),
    "lab build": ("--help",),
    "lab drive": ("--help",),
    "lab library": ("--family", "start", "--list"),
    "lab lift": ("--help",),
    "lab list": (),
    "lab run": ("--help",),
    "lab serve": ("--help",),
    "lab show": ("buffer-1m",),
    "lab worlds": ("--help",),
    "man": ("--help",),
    "mcp": ("--help",),
    "nstat": (RUN / "nstat_snd.csv",),
    "packets": (SLOW_READER,),
    "pair": (RUN / "snd.pcap.gz", RUN / "rcv.pcap.gz"),
    "plot": ("--list",),
    "reference": (),
    "report": (SLOW_READER, "--format", "json", "-o", "-"),
    "rules": (),
    "slice": (SLOW_READER, "--connection", 0, "-o", "-"),
    "snap": ("--help",),
    "ss": (SOCKETS,),
    "watch": ("--help",),
    "whatif": (SLOW_READER, "--each"),
    "wireshark index": ("--help",),
    "wireshark install": ("--print",),
    "wireshark open": ("--help",),
}
"""Arguments that make each command print; its help if it needs another host, a kernel or a data set."""


def commands(group: click.Group = cli, above: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in COMMANDS if group is cli else group.list_commands(context):
        command = group.get_command(context, name)
        # The end of a workload is a command of its group.
        if isinstance(command, click.Group) and not above:
            yield from commands(command, f"{name} ")
        else:
            yield f"{above}{name}"


def test_each_command_prints() -> None:
    assert sorted(PRINTERS) == sorted(commands())


@pytest.mark.parametrize("command", some_by_day(PRINTERS, of=6))
def test_a_closed_pipe_is_not_a_failure(command: str, tmp_path: Path) -> None:
    """With `| head`: no message, no partial file, and exit status 0 or that of a finding."""
    read, write_end = os.pipe()
    os.close(read)
    call = [str(each) for each in (TCPWIN, *command.split(), *PRINTERS[command])]
    done = subprocess.run(
        call,
        stdout=write_end,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=HANG_S,
        check=False,
        cwd=tmp_path,
    )
    os.close(write_end)
    assert (done.returncode in (0, 1), done.stderr) == (True, b"")
    assert not list(tmp_path.iterdir())


def test_a_system_without_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows' Python lacks these functions."""
    for name in ("fchown", "fchmod", "O_CLOEXEC"):
        monkeypatch.delattr(f"os.{name}")
    file = tmp_path / "out"
    for text in ("first", "second"):
        with open_whole(file) as out:
            out.write(text)
        assert file.read_text() == text
        file.chmod(0o640)
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]
