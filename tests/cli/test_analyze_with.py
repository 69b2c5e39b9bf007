"""`tcpwin analyze --with`: host snapshots next to packets; exit status, JSON, messages about options, bundles."""

from __future__ import annotations

import json
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cases import all_cases
from cli.command import SLOW_READER, refused, tcpwin
from hosts.joined import SECOND_NS, Transfer, copied_run, moved, ss_text, write_pcap
from spread import some_by_day

SCHEMA = json.loads(files("tcpwin.analysis").joinpath("schema.json").read_text(encoding="utf8"))
RUN = copied_run("slow-reader")
SND, RCV = RUN.truth / "ss_snd.txt", RUN.truth / "ss_rcv.txt"


def document(*arguments: object, **more: Any) -> dict[str, Any]:
    """Return the JSON output, which must match the schema."""
    done = tcpwin("analyze", "--json", *arguments, **more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
    return found


def host(found: dict[str, Any], label: str) -> dict[str, Any]:
    [one] = [each for each in found["hosts"] if each["label"] == label]
    assert isinstance(one, dict)
    return one


def test_document_has_the_hosts() -> None:
    found = document(SLOW_READER, "--with", SND, RCV)
    assert [each["label"] for each in found["hosts"]] == ["rcv", "snd"]
    snd = host(found, "snd")
    clock = snd.pop("clock")
    assert snd == {
        "label": "snd",
        "sides": ["b"],
        "files": [
            {
                "name": str(SND),
                "format": "ss",
                "samples": len(RUN.samples("snd")),
                "unknown_lines": 0,
                "first_unknown": [],
                "notes": [],
            }
        ],
        "sockets": len(RUN.samples("snd")),
        "sockets_matched": len(RUN.samples("snd")),
        "sockets_translated": [],
        "is_thinned": False,
        "kernel": None,
        "settings": None,
        "counter_samples": 0,
        "memory_samples": 0,
    }
    assert (clock["method"], clock["offset_ns"], clock["samples"]) == ("same_clock", 0, snd["sockets"])
    assert clock["least_ns"] <= 0 <= clock["most_ns"]
    assert clock["uncertainty_ns"] == max(-clock["least_ns"], clock["most_ns"])
    assert all("snapshots" not in each for each in found["connections"])


def test_one_connection_comes_with_its_samples() -> None:
    found = document(SLOW_READER, "--connection", 0, "--with", SND, RCV)
    [connection] = found["connections"]
    of_sender = [each for each in connection["snapshots"] if each["side"] == "b"]
    truth = RUN.samples("snd")
    assert [(each["time_ns"], each["sample"]["state"], each["sample"].get("bytes_acked", 0)) for each in of_sender] == [
        (sample.time_ns, sample.state, sample.number("bytes_acked")) for sample in truth
    ]
    assert [each["cwnd_bytes"] for each in of_sender] == [
        sample.number("cwnd") * sample.number("mss") for sample in truth
    ]
    assert [each["peer_window_bytes"]["value"] for each in of_sender] == [sample.number("snd_wnd") for sample in truth]
    assert all(each["disagreements"] == [] for each in connection["snapshots"])


def test_without_snapshots_the_document_is_as_before() -> None:
    assert "hosts" not in document(SLOW_READER)
    assert "snapshots" not in document(SLOW_READER, "--connection", 0)["connections"][0]


def test_text_names_the_hosts() -> None:
    done = tcpwin("analyze", SLOW_READER, "--with", SND, RCV)
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert [line.split(":")[0].split() for line in lines if line.startswith("host")] == [
        ["host", "rcv"],
        ["host", "snd"],
    ]
    assert sum("clock: taken as the capture's" in line for line in lines) == 2


def test_standard_input_is_the_capture() -> None:
    piped = document("-", "--connection", 0, "--with", SND, input=SLOW_READER.read_bytes())
    named = document(SLOW_READER, "--connection", 0, "--with", SND)
    assert piped["hosts"] == named["hosts"]
    assert piped["connections"] == named["connections"]


def test_standard_input_is_the_snapshot() -> None:
    piped = document(SLOW_READER, "--with", "-", input=SND.read_bytes())
    [only] = piped["hosts"]
    assert (only["sockets_matched"], only["sides"]) == (len(RUN.samples("snd")), ["b"])


def test_status_is_that_of_the_windows_still() -> None:
    assert tcpwin("analyze", "--check", SLOW_READER, "--with", SND).returncode == 1
    assert tcpwin("analyze", "--check", "--json", SLOW_READER, "--with", SND).returncode == 1


@all_cases(
    "words",
    [
        (SLOW_READER, "--with", SND, RCV),
        (SLOW_READER, "--with", SND, "--with", RCV),
        ("--with", SND, RCV, "--limit", 3, SLOW_READER),
        ("--with", SND, RCV, "--", SLOW_READER),
        (f"--with={SND}", f"--with={RCV}", SLOW_READER),
        (f"--with={SND}", SLOW_READER, "--with", RCV),
    ],
    ids=["one option", "two options", "option between", "dashes", "equals signs", "both"],
)
def test_words_of_with(words: tuple[object, ...]) -> None:
    assert [each["label"] for each in document(*words)["hosts"]] == ["rcv", "snd"]


@all_cases(
    ("words", "told"),
    [
        ((SLOW_READER, "--with"), "Option '--with' requires an argument"),
        ((SLOW_READER, "--with", "--check"), "Option '--with' requires an argument"),
        (("--with", SND, SLOW_READER), "Missing argument 'FILE...'"),
        ((SLOW_READER, "--clock-offset", "5"), "'5' is not a time with a unit"),
        ((SLOW_READER, "--clock-offset", "1e3s"), "'1e3s' is not a time with a unit"),
        ((SLOW_READER, "--clock-offset", "999999999999h"), "more than a century"),
        ((SLOW_READER, "--capture", "x.pcap"), "--capture names a capture in a bundle"),
    ],
)
def test_wrong_usage_exits_with_2(words: tuple[object, ...], told: str) -> None:
    assert told in refused("analyze", *words, status=2)


def test_snapshots_that_cannot_be_read_exit_with_3(tmp_path: Path) -> None:
    absent, empty = tmp_path / "absent.txt", tmp_path / "empty.txt"
    empty.touch()
    assert f"{absent}: No such file or directory" in refused("analyze", SLOW_READER, "--with", absent)
    assert refused("analyze", SLOW_READER, "--with", empty) == f"tcpwin: {empty}: empty\n"
    text = tmp_path / "prose.txt"
    text.write_text("Dear all,\n")
    assert "not a known snapshot format" in refused("analyze", SLOW_READER, "--with", text)
    assert "No such file or directory" in refused("analyze", SLOW_READER, "--with", "web=")


def test_a_capture_is_refused_as_snapshot(tmp_path: Path) -> None:
    capture = write_pcap(tmp_path / "c.pcap", Transfer())
    assert f"{capture}: binary, not text" in refused("analyze", SLOW_READER, "--with", capture)


@pytest.mark.parametrize("offset", some_by_day(["7200s", "+7200s", "2h", "120min", "7200000ms"]))
def test_an_offset_is_given_with_its_unit(tmp_path: Path, offset: str) -> None:
    path = tmp_path / "ss_snd.txt"
    path.write_text(moved(ss_text(RUN, "snd"), -7200 * SECOND_NS))
    [only] = document(SLOW_READER, "--with", path, "--clock-offset", offset)["hosts"]
    ns = 7200 * SECOND_NS
    assert only["clock"] == {
        "offset_ns": ns,
        "least_ns": ns,
        "most_ns": ns,
        "method": "given",
        "samples": 0,
        "agreeing": 0,
        "uncertainty_ns": 0,
    }


def test_an_offset_below_zero(tmp_path: Path) -> None:
    path = tmp_path / "ss_snd.txt"
    path.write_text(moved(ss_text(RUN, "snd"), 1_500_000_000))
    for words in (["--clock-offset", "-1.5s"], ["--clock-offset=-1.5s"]):
        [only] = document(SLOW_READER, *words, "--with", path)["hosts"]
        assert only["clock"]["offset_ns"] == -1_500_000_000


@pytest.mark.parametrize(
    ("name", "written", "label"),
    [
        ("ss_snd.txt", "{path}", "snd"),
        ("ss_snd.txt", "web1={path}", "web1"),
        # A name that exists is a path, whatever it contains.
        ("a=b.txt", "a=b.txt", "a=b"),
        ("a=b.txt", "web1=a=b.txt", "web1"),
        ("a=b.txt", "{path}", "a=b"),
        ("ss_snd.txt", "={path}", ""),
    ],
)
def test_a_host_is_named_before_its_file(tmp_path: Path, name: str, written: str, label: str) -> None:
    path = tmp_path / name
    path.write_bytes(SND.read_bytes())
    words = written.format(path=path)
    [only] = document(SLOW_READER, "--with", words, cwd=tmp_path)["hosts"]
    assert (only["label"], only["sockets_matched"]) == (label, len(RUN.samples("snd")))


def test_two_files_of_one_name_on_two_hosts(tmp_path: Path) -> None:
    for folder, source in (("one", SND), ("two", RCV)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ss.txt").write_bytes(source.read_bytes())
    words = [f"{folder}={tmp_path / folder / 'ss.txt'}" for folder in ("one", "two")]
    found = document(SLOW_READER, "--with", *words)
    assert [(each["label"], each["sides"]) for each in found["hosts"]] == [("one", ["b"]), ("two", ["a"])]


def test_lines_that_are_not_understood_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "ss_snd.txt"
    path.write_bytes(SND.read_bytes() + b"what is this?\nand this?\n")
    done = tcpwin("analyze", SLOW_READER, "--with", path)
    lines = len(SND.read_bytes().splitlines())
    assert done.returncode == 0
    assert done.stderr.decode() == (f"tcpwin: warning: {path}: 2 lines not understood (first: line {lines + 1})\n")


# Bundles.


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_bundle_gives_a_capture_and_its_snapshots(tmp_path: Path) -> None:
    members = {
        "snd/c.pcap.gz": SLOW_READER.read_bytes(),
        "snd/ss.txt": SND.read_bytes(),
        "rcv/ss.txt": RCV.read_bytes(),
    }
    path = write_zip(tmp_path / "b.zip", members)
    found = document(path, "--connection", 0)
    assert [each["label"] for each in found["hosts"]] == ["rcv", "snd"]
    beside = document(SLOW_READER, "--connection", 0, "--with", SND, RCV)
    assert found["connections"] == beside["connections"]
    with_bundle = document(SLOW_READER, "--with", path, "--connection", 0)
    assert with_bundle["connections"] == beside["connections"]


def test_of_several_captures_one_is_chosen(tmp_path: Path) -> None:
    receiver = copied_run("slow-reader-receiver")
    members = {
        "snd/c.pcap.gz": SLOW_READER.read_bytes(),
        "rcv/d.pcap.gz": receiver.capture.read_bytes(),
        "snd/ss.txt": SND.read_bytes(),
    }
    path = write_zip(tmp_path / "b.zip", members)
    told = refused("analyze", path)
    assert "2 captures" in told
    assert "snd/c.pcap.gz" in told
    assert "rcv/d.pcap.gz" in told
    for member in ("snd/c.pcap.gz", "c.pcap.gz"):
        assert document(path, "--capture", member)["capture"]["segments"] == 4586
    assert "x.pcap; available: snd/c.pcap.gz, rcv/d.pcap.gz" in refused("analyze", path, "--capture", "x.pcap")
    assert "is a bundle: read it alone" in refused("analyze", path, SLOW_READER, "--merge", status=2)


def test_a_bundle_without_a_capture(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "b.zip", {"ss.txt": SND.read_bytes()})
    assert "no capture in" in refused("analyze", path)
    empty = tmp_path / "folder"
    empty.mkdir()
    refused("analyze", empty)


def test_members_that_are_not_read_are_a_warning(tmp_path: Path) -> None:
    members = {"c.pcap.gz": SLOW_READER.read_bytes(), "snd/ss.txt": SND.read_bytes(), "letter.txt": b"Dear all,\n"}
    path = write_zip(tmp_path / "b.zip", members)
    done = tcpwin("analyze", path)
    assert (done.returncode, done.stderr.decode()) == (
        0,
        f"tcpwin: warning: {path}: 1 file of the bundle was not read: letter.txt (not a known snapshot format)\n",
    )


def test_counters_in_an_unknown_order_are_a_warning(tmp_path: Path) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("Tcp: RetransSegs\nTcp: 64\n")
    two.write_text("Tcp: RetransSegs\nTcp: 5\n")
    done = tcpwin("analyze", SLOW_READER, "--with", f"h={one}", f"h={two}")
    assert (done.returncode, done.stderr.decode()) == (
        0,
        f"tcpwin: warning: counters fall from {one} to {two}, and neither their times nor their names say which was "
        f"first: only those of {two} are compared\n",
    )
