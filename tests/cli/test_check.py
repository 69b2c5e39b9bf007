"""`tcpwin check`: exit status, output formats, selection of rules, thresholds, snapshots, and errors."""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from analysis.bundled import UNREADABLE, name_of
from cases import all_cases
from cli.command import CAPTURES, CUT_BLOCK, KEEP_ALIVE, MANY_SHORT, SLOW_READER, TEXT, refused, tcpwin
from live import HANG_S

from tcpwin.limits import all_rules

SCHEMA = json.loads(files("tcpwin.limits").joinpath("schema.json").read_text(encoding="utf8"))
ONLY_A_HEADER = CAPTURES / "broken" / "only-a-header.pcap"
BUNDLE = CAPTURES / "bundles" / "slow-reader.zip"
# The receiver's kernel counted 66 zero windows; closing and opening ACKs are 6,095,703,000 ns apart in total.
TW201 = ("--select", "TW201", SLOW_READER)
HEAD = (
    f"{SLOW_READER}:#0 server→client TW201 zero-window-stall "
    "(warning, 6.1 s of the 28.1 s lost in all (slow reader), certain): "
    "The client's application reads too slowly: zero window 66 times, 6.1 s total (20 % of the connection)"
)
PARAGRAPH = [
    "6 MB in 30.1 s. Limited by a slow reader on the client (93 % of the time, certain). "
    "The client's application keeps its receive window full.",
    "Fix: Make the client's application read faster. `ss -tmi` on the client shows "
    "whether unread data (Recv-Q) fills the buffer.",
    "Cost: about 28.1 s (at least 6.1 s): without this limit it would have taken 2 s instead of 30.1 s",
    "When: mostly from 40 ms to 27.3 s of the connection",
    "Evidence: the server waited 28.1 s of 30.1 s: 20.5 s with the window full (no room for another segment) + "
    "6.1 s at zero window (no room offered, 66 times) + 1.49 s with the window open again, "
    "but kept small by unread data; "
    "frame.number in {241, 1235, 2115, 3049, 3812, 4571} "
    "(segments that filled the window; rule TW202 receive-window-limited)",
    "",
]
SUMMARY = "1 finding (1 warning); 1 finding of other rules not shown; 1 rule checked on 1 connection."


def lines(*arguments: object, **more: Any) -> list[str]:
    return tcpwin("check", *arguments, **more).stdout.decode().splitlines()


def document(*arguments: object, **more: Any) -> dict[str, Any]:
    done = tcpwin("check", "--format", "json", *arguments, **more)
    read: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    jsonschema.validate(read, SCHEMA, jsonschema.Draft202012Validator)
    return read


def test_text() -> None:
    told = lines(*TW201)
    assert told[:6] == PARAGRAPH
    assert told[6] == HEAD
    assert told[7:10] == [
        "    ends       client 10.9.2.2:36984, server 10.9.1.1:5201",
        "    owner      the client's application",
        "    evidence   frames 1627, 1628, 1577, 1578, 1474, 1475 (start and end of the longest 3 of 66)",
    ]
    assert told[-2:] == ["", SUMMARY]


@all_cases(
    ("arguments", "status"),
    [
        (TW201, 1),
        ((*TW201, "--fail-on", "info"), 1),
        ((*TW201, "--fail-on", "warning"), 1),
        ((*TW201, "--fail-on", "error"), 0),
        ((*TW201, "--fail-on", "never"), 0),
        (("--select", "TW201", "--fail-on", "info", KEEP_ALIVE), 0),
        ((*TW201, "--limit", "0"), 1),
        ((*TW201, "--format", "json"), 1),
        ((*TW201, "--format", "github"), 1),
        ((*TW201, "--threshold", "TW201.stall_ns=6095703us"), 1),
        ((*TW201, "--threshold", "TW201.stall_ns=6095704us"), 0),
    ],
)
def test_exit_status(arguments: tuple[object, ...], status: int) -> None:
    done = tcpwin("check", *arguments)
    assert (done.returncode, done.stderr) == (status, b"")


@pytest.mark.parametrize("path", UNREADABLE[::3], ids=name_of)
def test_unreadable_input_exits_with_3_and_one_line(path: Path) -> None:
    assert refused("check", path).startswith(f"tcpwin: {path}: ")


@pytest.mark.parametrize("path", [KEEP_ALIVE, SLOW_READER, MANY_SHORT, ONLY_A_HEADER], ids=name_of)
def test_capture_gives_a_document_by_the_schema(path: Path) -> None:
    read = document(path)
    assert read["name"] == str(path)
    assert [rule["code"] for rule in read["rules"]] == list(all_rules())
    assert sum(read["counts"].values()) == len(read["findings"]) + read["left_out"]
    costs = [finding["cost_ns"] for finding in read["findings"]]
    assert costs == sorted(costs, reverse=True)


def test_json() -> None:
    read = document(*TW201)
    [finding] = read.pop("findings")
    assert (finding["code"], finding["cost_ns"], finding["a"]) == ("TW201", 6_095_703_000, "10.9.2.2:36984")
    [rule] = read.pop("rules")
    assert rule["thresholds"]["stall_ns"]["default"] == 200_000_000
    [connection] = read.pop("connections")
    assert (connection["id"], connection["a"]) == (0, "10.9.2.2:36984")
    assert read.pop("verdict") == connection["verdict"]
    assert connection["verdict"]["limit"] == "receiver_application"
    spent_ns = connection["budget"]["b_to_a"]["items_ns"]
    assert spent_ns["zero_window"] == 6_095_703_000
    assert read.pop("summary")["worst"] == [finding]
    assert read == {
        "schema": "tcpwin/findings/3",
        "name": str(SLOW_READER),
        "counts": {"TW201": 1},
        "left_out": 0,
        "known": 0,
        "failed": [],
    }


def test_an_ignored_rule_still_counts_in_the_verdict() -> None:
    """The limit does not change with the rules that are shown, and the gate opens."""
    ignored = ("--ignore", "TW2", SLOW_READER)
    done = tcpwin("check", *ignored)
    told = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert told[:6] == PARAGRAPH
    assert told[6].startswith("No findings; 2 findings of other rules not shown; ")
    assert document(*ignored)["verdict"] == document(SLOW_READER)["verdict"]


def test_limit_is_for_every_form() -> None:
    assert lines(*TW201, "--limit", 0) == [
        *PARAGRAPH,
        SUMMARY,
        "1 finding not shown: --limit N shows more, --select CODE those of one rule.",
    ]
    read = document(*TW201, "--limit", 0)
    assert (read["findings"], read["counts"], read["left_out"]) == ([], {"TW201": 1}, 1)
    done = tcpwin("check", *TW201, "--limit", 0, "--format", "github")
    closing, counted = done.stdout.decode().splitlines()
    assert closing.startswith("Connection 0: Limited by ")
    assert (counted, done.stderr.decode()) == (SUMMARY, "tcpwin: warning: 1 findings omitted\n")


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("out.txt", PARAGRAPH[0]),
        ("out.json", '{"schema": "tcpwin/findings/3", "findings": [\n'),
        ("out.sarif", '{\n "$schema": "https://docs.oasis-open.org/sarif/'),
        ("out.xml", '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites '),
    ],
)
def test_output_goes_to_a_file_in_the_form_of_its_name(tmp_path: Path, name: str, begins: str) -> None:
    done = tcpwin("check", *TW201, "-o", tmp_path / name)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
    text = (tmp_path / name).read_text(encoding="utf8")
    assert text.startswith(begins)
    assert text.endswith("\n")
    assert tcpwin("check", *TW201, "-o", tmp_path / "again", "--format", "text").stdout == b""
    assert (tmp_path / "again").read_text(encoding="utf8").splitlines()[6] == HEAD


def test_sarif_and_junit_and_github_are_whole() -> None:
    sarif = json.loads(tcpwin("check", *TW201, "--format", "sarif").stdout)
    assert [each["ruleId"] for each in sarif["runs"][0]["results"]] == ["TW201"]
    assert [each["id"] for each in sarif["runs"][0]["tool"]["driver"]["rules"]] == ["TW201"]
    suites = ElementTree.fromstring(tcpwin("check", *TW201, "--format", "junit").stdout)
    assert [each.get("name") for each in suites.iter("testcase")] == ["TW201 zero-window-stall"]
    assert len(list(suites.iter("failure"))) == 1
    command, closing, summary = lines(*TW201, "--format", "github")
    assert command.startswith(
        f"::warning file={SLOW_READER},title=TW201 zero-window-stall::{SLOW_READER}:#0 server→client TW201 "
    )
    assert closing.startswith("Connection 0: Limited by ")
    assert summary == SUMMARY


def test_input_is_never_written_over(tmp_path: Path) -> None:
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(KEEP_ALIVE.read_bytes())
    assert "is also an input file" in refused("check", capture, "-o", capture, status=2)
    assert capture.read_bytes() == KEEP_ALIVE.read_bytes()
    assert refused("check", capture, "-o", tmp_path / "no" / "out") == (
        f"tcpwin: {tmp_path}/no/out: No such file or directory\n"
    )


def test_choice_of_rules() -> None:
    every = list(all_rules())

    def asked(*arguments: object) -> list[str]:
        return [rule["code"] for rule in document(KEEP_ALIVE, *arguments)["rules"]]

    assert asked() == every
    assert asked("--select", "tw2") == [code for code in every if code.startswith("TW2")]
    assert asked("--ignore", "TW2") == [code for code in every if not code.startswith("TW2")]
    both = [code for code in every if code == "TW201" or code.startswith("TW3")]
    assert asked("--select", "TW3", "--select", "zero-window-stall") == both
    assert asked("--select", " TW3 , zero-window-stall,") == both
    assert asked("--select", "TW2,TW3", "--ignore", "TW2") == [code for code in every if code.startswith("TW3")]


@all_cases(
    ("arguments", "words"),
    [
        ([], "Missing argument 'FILE...'"),
        (["--select", "TW999", KEEP_ALIVE], "no rule begins with TW999: `tcpwin rules` lists them"),
        (["--select", "", KEEP_ALIVE], "a rule's code, the beginning of one, or a name is missing"),
        (["--ignore", " , ", KEEP_ALIVE], "a rule's code, the beginning of one, or a name is missing"),
        (["--select", "TW201", "--ignore", "TW2", KEEP_ALIVE], "--ignore excludes every rule of --select"),
        (["--threshold", "TW201.stall_ns", KEEP_ALIVE], "write it as TW201.stall_ns=500ms"),
        (["--threshold", "stall_ns=5", KEEP_ALIVE], "write it as TW201.stall_ns=500ms"),
        (["--threshold", "TW201.stall=5", KEEP_ALIVE], "TW201 has no threshold 'stall': it has stall_ns, share."),
        (["--threshold", "zero-window-stal.stall_ns=5", KEEP_ALIVE], "did you mean TW201 (zero-window-stall)?"),
        (["--threshold", "TW201.stall_ns=", KEEP_ALIVE], "'' is not understood: write it as 500ms."),
        (["--threshold", "TW201.stall_ns=5 apples", KEEP_ALIVE], "'5 apples' is not understood"),
        (["--threshold", "TW201.stall_ns=-5ms", KEEP_ALIVE], "'-5ms' is not understood"),
        (["--threshold", "TW201.stall_ns=nan", KEEP_ALIVE], "'nan' is not understood"),
        (["--threshold", f"TW201.stall_ns={'9' * 5000}", KEEP_ALIVE], "is not understood: write it as 500ms."),
        (["--threshold", "TW201.share=20", KEEP_ALIVE], "'20' is above 1 (100 %)"),
        (["--threshold", "TW201.share=20ms", KEEP_ALIVE], "'20ms' is not understood: write it as 0.1 or 10%."),
        (["--fail-on", "bad", KEEP_ALIVE], "'bad' is not one of 'info', 'warning', 'error', 'never'"),
        (["--format", "html", KEEP_ALIVE], "'html' is not one of 'text', 'json', 'sarif', 'github', 'junit'"),
        (["--limit", "-1", KEEP_ALIVE], "-1 is not in the range x>=0"),
        (["-", KEEP_ALIVE], "standard input (-) cannot be read together with files"),
        (["--capture", "x", KEEP_ALIVE], "--capture names a capture in a bundle"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[object], words: str) -> None:
    assert words in " ".join(refused("check", *arguments, status=2).split())


@all_cases(
    ("value", "is_found"),
    [
        ("6095703000", True),
        ("6095703000ns", True),
        ("6095703001", False),
        ("6.095703s", True),
        ("6.0957031 s", False),
        ("6095.703ms", True),
        ("0.1min", True),
        ("1h", False),
        ("6e9", True),
        ("0", True),
    ],
)
def test_times_of_thresholds(value: str, is_found: bool) -> None:
    done = tcpwin("check", *TW201, "--threshold", f"zero-window-stall.stall_ns={value}")
    assert (done.returncode, done.stderr) == (int(is_found), b"")


def test_shares_of_thresholds() -> None:
    """6.096 s of 30.088 s are 20.26 %."""
    for value, status in (("0.2", 1), ("20%", 1), ("20.3%", 0), (".203", 0)):
        assert tcpwin("check", *TW201, "--threshold", f"TW201.share={value}").returncode == status


def test_standard_input_and_several_files() -> None:
    told = lines("--select", "TW201", "-", input=SLOW_READER.read_bytes())
    assert told[6] == HEAD.replace(str(SLOW_READER), "standard input")
    told = lines("--select", "TW201", "--merge", KEEP_ALIVE, SLOW_READER)
    assert len([line for line in told if line.startswith("2 files:#")]) == 1
    assert told[-1] == (
        "1 finding (1 warning) in 1 connection; 2 findings of other rules not shown; 1 rule checked on 2 connections."
    )


def test_all_rules_read_standard_input() -> None:
    """Rules look at events, for which the capture is read again."""
    from_file, from_stdin = (
        document(name, **more)["findings"]
        for name, more in ((SLOW_READER, {}), ("-", {"input": SLOW_READER.read_bytes()}))
    )
    assert from_file == from_stdin != []


def test_bundle_and_snapshots(tmp_path: Path) -> None:
    read = document("--select", "TW201", BUNDLE)
    assert (read["name"], read["counts"]) == (f"{BUNDLE}: slow-reader/sender.pcap.gz", {"TW201": 1})
    snapshot = tmp_path / "sysctl.txt"
    snapshot.write_text("net.ipv4.tcp_rmem = 4096 131072 6291456\nwhat is this\n", encoding="utf8")
    done = tcpwin("check", *TW201, "--with", snapshot, "--format", "json")
    assert done.returncode == 1
    assert done.stderr.decode() == f"tcpwin: warning: {snapshot}: 1 line not understood (first: line 2)\n"
    assert refused("check", *TW201, "--with", tmp_path / "absent").startswith(f"tcpwin: {tmp_path}/absent: ")


def test_damage_is_a_warning() -> None:
    done = tcpwin("check", CUT_BLOCK, "--select", "TW201")
    assert done.returncode == 0
    assert done.stderr.decode().startswith(f"tcpwin: warning: {CUT_BLOCK}: ")


def test_an_unreadable_capture_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert refused("check", TEXT, "-o", out).startswith(f"tcpwin: {TEXT}: ")
    assert not out.exists()


def test_closed_pipe_is_not_a_finding() -> None:
    """`tcpwin check … | head -1` must neither report a problem nor complain."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        import subprocess

        from cli.command import TCPWIN

        done = subprocess.run(
            [TCPWIN, "check", KEEP_ALIVE], stdout=pipe, stderr=subprocess.PIPE, timeout=HANG_S, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_selection_of_nothing_opens_no_gate() -> None:
    """Otherwise a gate would stay open forever after a port changed."""
    done = tcpwin("check", SLOW_READER, "--filter", "port 443")
    words = f"tcpwin: {SLOW_READER}: of 4,586 packets none was selected: filter 'port 443'"
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode().startswith(words.rsplit(":", 1)[0])
    done = tcpwin("check", SLOW_READER, KEEP_ALIVE, "--from", "100")
    assert done.returncode == 3
    assert done.stderr.decode().count("none was selected") == 2
