"""`tcpwin analyze`: exit status, text, JSON, standard input."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from analysis.bundled import READABLE, TRUTHS, UNREADABLE, WHOLE, name_of, plain_bytes
from cases import all_cases
from cli.command import CUT_BLOCK, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TCPWIN, TEXT, refused, tcpwin

# Captures whose titles mean that a receive window limited a connection.
PROBLEMS = {
    "idle-restart.pcap.gz",
    "loss-1-percent.pcap.gz",
    "lossy-path-receiver.pcap.gz",
    "lossy-path.pcapng.gz",
    "aborted-by-reader.pcapng",
    "lost-window-update-receiver.pcap.gz",
    "lost-window-update.pcap.gz",
    "no-window-scaling.pcap.gz",
    "receive-buffer-64k-receiver.pcap.gz",
    "receive-buffer-64k.pcap.gz",
    "slow-reader-receiver.pcap.gz",
    "slow-reader.pcap.gz",
    "zero-window-loopback.pcap",
    "zero-window-stall.pcap.gz",
}


@all_cases("path", WHOLE, ids=name_of, of=3, first=2)
def test_check_exits_with_1_where_time_was_lost(path: Path) -> None:
    done = tcpwin("analyze", "--check", path)
    assert done.returncode == (1 if path.name in PROBLEMS else 0)
    assert done.stderr == b""
    assert tcpwin("analyze", path).returncode == 0


def test_check_with_json_and_of_one_connection() -> None:
    assert tcpwin("analyze", "--check", "--json", SLOW_READER).returncode == 1
    assert tcpwin("analyze", "--check", "--connection", 0, SLOW_READER).returncode == 1
    assert tcpwin("analyze", "--check", "--connection", 3, MANY_SHORT).returncode == 0


@all_cases("path", UNREADABLE, ids=name_of)
def test_unreadable_input_exits_with_3_and_one_line(path: Path) -> None:
    assert refused("analyze", path).startswith(f"tcpwin: {path}: ")
    assert refused("packets", path).startswith(f"tcpwin: {path}: ")


@pytest.mark.parametrize("command", ["analyze", "packets"])
def test_inputs_that_cannot_be_read(command: str, tmp_path: Path) -> None:
    absent = tmp_path / "absent.pcap"
    assert refused(command, absent).startswith(f"tcpwin: {absent}: No such file or directory")
    what = {"analyze": "no capture in this bundle", "packets": "is a folder, not a capture"}[command]
    assert refused(command, tmp_path) == f"tcpwin: {tmp_path}: {what}\n"
    assert f"{TEXT}: not a pcap or pcapng file" in refused(command, KEEP_ALIVE, TEXT)
    assert refused(command, "-") == "tcpwin: standard input: empty file\n"
    assert "standard input: not a pcap or pcapng file" in refused(command, "-", input=b"no capture at all, but text")


@all_cases(
    ("arguments", "words"),
    [
        (["analyze"], "Missing argument 'FILE...'"),
        (["packets"], "Missing argument 'FILE...'"),
        (["nonsense"], "'nonsense' is neither a command nor a file"),
        (["analyse", KEEP_ALIVE], "did you mean `tcpwin analyze`?"),
        (["analyze", "--nonsense", KEEP_ALIVE], "--nonsense"),
        (["analyze", "--limit", "-1", KEEP_ALIVE], "-1 is not in the range x>=0"),
        (["analyze", "--limit", "many", KEEP_ALIVE], "'many' is not a valid integer"),
        (["packets", "--format", "xml", KEEP_ALIVE], "'xml' is not one of 'csv', 'jsonl', 'parquet'"),
        (["packets", "--format", "parquet", KEEP_ALIVE], "parquet is binary: name a file with -o OUT"),
        (["analyze", "-", KEEP_ALIVE], "standard input (-) cannot be read together with files"),
        ([], "Usage: tcpwin"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[object], words: str) -> None:
    assert words in refused(*arguments, status=2)


def test_version_and_help() -> None:
    from importlib.metadata import version

    done = tcpwin("--version")
    assert (done.returncode, done.stdout) == (0, f"tcpwin {version('tcpwin')}\n".encode())
    for arguments in (["--help"], ["-h"], ["analyze", "--help"], ["packets", "-h"], ["fields", "--help"]):
        done = tcpwin(*arguments)
        assert done.returncode == 0
        assert done.stdout.startswith(b"Usage: tcpwin ")
    assert b"Exit status: 0 " in tcpwin("--help").stdout


def test_a_file_alone_is_analysed_and_a_command_explained_after_help() -> None:
    assert tcpwin(SLOW_READER, "--check").stdout == tcpwin("analyze", SLOW_READER).stdout
    assert tcpwin(SLOW_READER, "--check").returncode == 1
    assert refused("no-such-file.pcap").startswith("tcpwin: no-such-file.pcap: No such file or directory")
    assert tcpwin("help", "slice").stdout == tcpwin("slice", "--help").stdout
    assert tcpwin("help").stdout == tcpwin("--help").stdout


def test_the_answer_comes_first_and_the_capture_last() -> None:
    answer, fix, *lines = tcpwin("analyze", SLOW_READER).stdout.decode().splitlines()
    assert "Limited by" in answer
    assert fix.startswith("Fix: ")
    labels = [line.partition(": ")[0] for line in lines]
    assert labels.index("Cost") < labels.index("Evidence")
    assert lines[-3].startswith("capture  ")
    assert lines[-1].startswith("quality  ")


@all_cases(
    "command",
    [
        *(["analyze"], ["check"], ["compare", KEEP_ALIVE], ["exchanges"], ["packets"], ["pair", KEEP_ALIVE]),
        *(["report", "-o", "x.html"], ["slice", "-o", "x.pcap"], ["whatif"]),
    ],
)
def test_a_selection_that_matches_nothing_exits_with_3(command: list[object]) -> None:
    assert "selected" in refused(*command, KEEP_ALIVE, "--from", "99999") or command[0] == "slice"


@all_cases("path", READABLE, ids=name_of, of=3)
def test_damage_is_a_warning_with_its_byte(path: Path) -> None:
    warnings = TRUTHS[path]["warnings"]
    for arguments in (["analyze"], ["analyze", "--json"], ["packets"]):
        done = tcpwin(*arguments, path)
        assert done.returncode == 0
        lines = done.stderr.decode().splitlines()
        assert len(lines) == len(warnings)
        for line, warning in zip(lines, warnings, strict=True):
            assert line.startswith(f"tcpwin: warning: {path}: ")
            assert line.endswith(f"(at byte {warning['byte_offset']})")
    if not warnings:
        return
    text = tcpwin("analyze", path).stdout.decode()
    assert text.count("damaged: ") == len(warnings)


@all_cases("path", WHOLE, ids=name_of, of=3, first=1)
def test_standard_input_gives_what_the_file_gives(path: Path) -> None:
    from_file = json.loads(tcpwin("analyze", "--json", path).stdout)
    from_stdin = json.loads(tcpwin("analyze", "--json", "-", input=path.read_bytes()).stdout)
    assert from_stdin["name"] == "standard input"
    assert from_stdin["connections"] == from_file["connections"]
    assert tcpwin("packets", "-", input=path.read_bytes()).stdout == tcpwin("packets", path).stdout


@pytest.mark.parametrize("program", ["gzip", "zstd", "lz4"])
def test_compressed_and_plain_files_are_alike(program: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(plain_bytes(SLOW_READER, tool))
    packed = tmp_path / "packed.bin"
    packed.write_bytes(subprocess.run([tool(program), "-c", plain], capture_output=True, check=True).stdout)
    assert packed.stat().st_size < plain.stat().st_size
    assert tcpwin("packets", packed).stdout == tcpwin("packets", plain).stdout


def test_several_files_are_one_capture(tool: Callable[[str], str], tmp_path: Path) -> None:
    again = tmp_path / "again.pcap.gz"
    again.write_bytes(gzip.compress(plain_bytes(MANY_SHORT, tool)))
    document = json.loads(tcpwin("analyze", "--json", "--merge", KEEP_ALIVE, MANY_SHORT).stdout)
    assert document["name"] == "2 files"
    assert [file["file"] for file in document["capture"]["files"]] == [str(KEEP_ALIVE), str(MANY_SHORT)]
    assert len(document["connections"]) == 66
    alone = json.loads(tcpwin("analyze", "--json", again).stdout)
    assert len(alone["connections"]) == 65


@all_cases(("limit", "shown"), [(0, 0), (1, 1), (5, 5), (65, 65), (100, 65)])
def test_limit(limit: int, shown: int) -> None:
    text = tcpwin("analyze", "--limit", limit, MANY_SHORT).stdout.decode()
    # A row each, then the first three in full.
    assert len(re.findall(r"^ *\d+  127\.0\.0\.1:\d+ → 127\.0\.0\.1:\d+  ", text, re.MULTILINE)) == shown
    assert sum(line.startswith("#") for line in text.splitlines()) == min(shown, 3)
    left = 65 - shown
    more = f"{left} more connection{'s' if left != 1 else ''} not shown: --limit N shows more, --json all."
    assert (more in text) == bool(left)
    assert "65 connections" in text


def test_limit_0_still_prints_the_verdict() -> None:
    text = tcpwin("analyze", "--limit", 0, SLOW_READER).stdout.decode()
    assert "slow reader" in text


def test_one_connection_in_full() -> None:
    text = tcpwin("analyze", "--connection", 0, SLOW_READER).stdout.decode()
    assert text.startswith("#0  client 10.9.2.2:36984 → server 10.9.1.1:5201")
    # 66 episodes, as counted by the receiver's kernel; twenty are shown.
    assert text.splitlines()[-1].strip() == "46 more"
    document = json.loads(tcpwin("analyze", "--json", "--connection", 2, MANY_SHORT).stdout)
    assert [connection["id"] for connection in document["connections"]] == [2]


@pytest.mark.parametrize("number", [1, 65, 1 << 31, (1 << 32) - 1])
def test_connection_that_is_not_there(number: int) -> None:
    for arguments in (["analyze"], ["analyze", "--json"], ["packets"]):
        text = refused(*arguments, "--connection", number, KEEP_ALIVE)
        assert text == f"tcpwin: no connection {number}: the capture has 1\n"


def test_connection_beyond_all_numbers() -> None:
    for command in ("analyze", "packets"):
        assert "no connection" in refused(command, "--connection", 1 << 80, KEEP_ALIVE)
        refused(command, "--connection", -1, KEEP_ALIVE, status=2)


def test_cut_file_is_analysed() -> None:
    done = tcpwin("analyze", CUT_BLOCK)
    assert done.returncode == 0
    assert "5 packets" in done.stdout.decode()


def test_completion_for_three_shells(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = tcpwin(env={"_TCPWIN_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        assert done.returncode == 0
        assert b"_TCPWIN_COMPLETE" in done.stdout
    words = {"_TCPWIN_COMPLETE": "bash_complete", "COMP_WORDS": "tcpwin anal", "COMP_CWORD": "1"}
    assert tcpwin(env=words).stdout == b"plain,analyze\n"


def test_fields_are_printed() -> None:
    assert b"zero_window_ns" in tcpwin("fields").stdout
    assert TCPWIN.is_file()
