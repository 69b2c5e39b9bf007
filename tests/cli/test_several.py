"""Several captures named together give the same answers as each alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
from cli import command
from cli.command import CAPTURES, TCPWIN, TEXT
from live import HANG_S, until

import tcpwin as library
from tcpwin.cli.options import CaptureOptions
from tcpwin.cli.several import answer_each
from tcpwin.limits import Analysis

LAB = CAPTURES / "lab"
READER = LAB / "slow-reader.pcap.gz"
LOSS = LAB / "loss-1-percent.pcap.gz"
HEALTHY = LAB / "window-scaling.pcap.gz"


def tcpwin(*arguments: object, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a separate process, which may start others."""
    return command.tcpwin(*arguments, env=dict(os.environ), **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of captures that also contains another kind of file."""
    folder = tmp_path / "captures"
    folder.mkdir()
    for each in (READER, LOSS, HEALTHY):
        shutil.copy(each, folder)
    (folder / "README").write_text("Three captures.\n")
    return folder


def alone(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tcpwin(*arguments).stdout)
    return found


def test_each_document_is_that_of_the_capture_alone() -> None:
    done = tcpwin("analyze", LOSS, READER, HEALTHY, "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["schema"] == "tcpwin/captures/1"
    assert [each["file"] for each in document["captures"]] == [str(LOSS), str(READER), str(HEALTHY)]
    for each in document["captures"]:
        assert each["document"] == alone("analyze", each["file"], "--json")
        assert (each["failure"], each["warnings"]) == (None, [])


def test_the_table_has_the_costliest_first() -> None:
    done = tcpwin("analyze", LOSS, HEALTHY, READER)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "3 captures, 2 with a problem."
    rows = [line.split()[0] for line in lines if line.startswith(str(LAB)) and ", connection" not in line]
    assert rows == [str(READER), str(LOSS), str(HEALTHY)]
    for path in (READER, LOSS):
        verdict = library.analyze(path).worst(1)[0].verdict
        assert f"{path}, connection 0: {verdict.answer}" in lines


def test_a_folder_of_captures_is_its_captures(folder: Path) -> None:
    (folder / "broken.pcap.gz").write_bytes(b"nothing of a capture")
    done = tcpwin("analyze", folder, "--json")
    captures = json.loads(done.stdout)["captures"]
    assert [Path(each["file"]).name for each in captures] == [
        "broken.pcap.gz",
        "loss-1-percent.pcap.gz",
        "slow-reader.pcap.gz",
        "window-scaling.pcap.gz",
    ]
    assert done.returncode == 3


def test_a_folder_stands_for_the_bundles_in_it_too(tmp_path: Path) -> None:
    """One skipped without a word would open the gate of `check`."""
    (tmp_path / "older").mkdir()
    shutil.copy(CAPTURES / "bundles" / "slow-reader.zip", tmp_path / "older")
    alone = tcpwin("check", tmp_path)
    assert alone.returncode == 1
    assert b"slow-reader.zip: slow-reader/sender.pcap.gz:#0 " in alone.stdout
    shutil.copy(HEALTHY, tmp_path)
    with ZipFile(tmp_path / "notes.zip", "w") as archive:
        archive.writestr("notes.txt", "nothing of a capture")
    (tmp_path / "broken.zip").write_bytes(b"PK and no more")
    done = tcpwin("check", tmp_path, "--format", "json")
    names = [Path(each["file"]).name for each in json.loads(done.stdout)["captures"]]
    assert names == ["broken.zip", "slow-reader.zip", HEALTHY.name]
    assert done.returncode == 3


def test_a_folder_with_snapshots_is_a_bundle(folder: Path) -> None:
    (folder / "sysctl.txt").write_text("net.ipv4.tcp_rmem = 4096 131072 6291456\n")
    done = tcpwin("analyze", folder)
    assert done.returncode == 3
    assert b"3 captures; choose one" in done.stderr
    assert tcpwin("analyze", folder, "--capture", LOSS.name).returncode == 0


@pytest.mark.parametrize("name", ["analyze", "check"])
def test_a_broken_file_leaves_the_others(name: str) -> None:
    form = ("--json",) if name == "analyze" else ("--format", "json")
    done = tcpwin(name, TEXT, HEALTHY, *form)
    assert done.returncode == 3
    broken, whole = json.loads(done.stdout)["captures"]
    assert (broken["document"], "looks like a text file" in broken["failure"]) == (None, True)
    assert whole["document"]["connections"]
    assert done.stderr.decode().count("text.pcap") == 1


def test_a_folder_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = tcpwin("analyze", tmp_path / "empty", HEALTHY, "--json")
    assert done.returncode == 3
    empty, whole = json.loads(done.stdout)["captures"]
    assert (empty["document"], "no capture in" in empty["failure"]) == (None, True)
    assert whole["document"]["connections"]


def test_an_invalid_filter_is_reported_once() -> None:
    alone, several = (tcpwin("analyze", *files, "--filter", "hosst 10.0.0.1") for files in ((LOSS,), (LOSS, READER)))
    assert (alone.returncode, several.returncode) == (2, 2)
    assert several.stderr == alone.stderr
    assert several.stdout == b""


def test_exit_status_of_all_together() -> None:
    assert tcpwin("analyze", HEALTHY, READER).returncode == 0
    assert tcpwin("analyze", HEALTHY, READER, "--check").returncode == 1
    assert tcpwin("check", HEALTHY, READER).returncode == 1
    assert tcpwin("check", HEALTHY, READER, "--fail-on", "never").returncode == 0


def test_sarif_says_in_which_file_each_result_is() -> None:
    (run,) = json.loads(tcpwin("check", READER, TEXT, LOSS, "--format", "sarif").stdout)["runs"]
    uris = [each["location"]["uri"] for each in run["artifacts"]]
    assert [Path(uri).name for uri in uris] == [READER.name, LOSS.name]
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"] for each in run["results"]]
    assert {place["uri"] for place in places} == set(uris)
    assert all(uris[place["index"]] == place["uri"] for place in places)
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "text file" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    codes = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(codes[each["ruleIndex"]] == each["ruleId"] for each in run["results"])


def test_junit_has_a_suite_for_each() -> None:
    suites = ElementTree.fromstring(tcpwin("check", READER, TEXT, "--format", "junit").stdout)
    assert [(Path(each.get("name") or "").name, each.get("errors")) for each in suites] == [
        (READER.name, "0"),
        (TEXT.name, "1"),
    ]


def test_github_and_text_name_the_file() -> None:
    github = tcpwin("check", READER, TEXT, "--format", "github").stdout.decode()
    assert f"::error file={str(TEXT).replace(':', '%3A')},title=unreadable::" in github
    assert f"file={READER}," in github
    text = tcpwin("check", READER, LOSS).stdout.decode()
    for path in (READER, LOSS):
        own = tcpwin("check", path).stdout.decode()
        assert f"== {path}\n{own}" in text


def test_merged_they_are_one(tmp_path: Path, tool: Callable[[str], str]) -> None:
    subprocess.run([tool("editcap"), "-c", "2000", LOSS, tmp_path / "piece.pcap"], check=True)
    pieces = sorted(tmp_path.glob("piece*"))
    done = tcpwin("analyze", *pieces)
    assert b"pieces of one capture: --merge" in done.stderr
    merged, whole = alone("analyze", *pieces, "--merge", "--json"), alone("analyze", LOSS, "--json")
    assert merged["connections"] == whole["connections"]
    # Other captures are not mentioned.
    assert b"--merge" not in tcpwin("analyze", LOSS, READER).stderr


def test_options_for_a_single_capture() -> None:
    for arguments in (("--connection", "0"), ("--with", str(LAB / "x")), ("--capture", "x")):
        done = tcpwin("analyze", LOSS, READER, *arguments)
        assert done.returncode == 2
        assert b"--merge" in done.stderr
    assert tcpwin("analyze", LOSS, "-", input=b"").returncode == 2


def test_reports_go_into_a_folder(folder: Path, tmp_path: Path) -> None:
    done = tcpwin("report", folder, READER, "--format", "md", "-o", tmp_path / "reports")
    assert done.returncode == 0
    names = ["loss-1-percent.md", "slow-reader-2.md", "slow-reader.md", "window-scaling.md"]
    assert sorted(each.name for each in (tmp_path / "reports").iterdir()) == names
    assert tcpwin("report", LOSS, READER).returncode == 2
    assert tcpwin("report", LOSS, "-o", tmp_path / "reports").returncode == 2


def die_of_one(analysis: Analysis, file: str, _: object) -> int:
    """Kill the process at one of the files."""
    if file == str(LOSS):
        os.kill(os.getpid(), signal.SIGKILL)
    return len(analysis)


def test_a_process_that_ends_leaves_the_others() -> None:
    files = [str(each) for each in (READER, LOSS, HEALTHY, READER, HEALTHY, READER)]
    answers = list(answer_each(files, die_of_one, CaptureOptions()))
    assert [each.file for each in answers] == files
    assert [each.answer for each in answers] == [1, None, 1, 1, 1, 1]
    assert "the process that read it ended" in (answers[1].failure or "")


@pytest.mark.parametrize(("sig", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_all_processes_end_with_the_command(sig: signal.Signals, status: int, tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"{number}.pcap.gz").symlink_to(HEALTHY)
    running = subprocess.Popen([TCPWIN, "analyze", tmp_path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    pids = until(lambda: children.read_text().split())
    running.send_signal(sig)
    assert running.wait(HANG_S) == status
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
