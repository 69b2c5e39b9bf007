"""Each sample is recognised as its format, whatever timestamps it contains."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice

import pytest
from cases import all_cases
from hosts.truth_files import TRUTH
from reference import LAB_RUNS

from tcpwin.errors import SnapshotError
from tcpwin.hosts import SnapshotFile
from tcpwin.hosts.format import HEAD_LINES, formats, recognise
from tcpwin.hosts.lines import Lines
from tcpwin.hosts.times import Stamps

ENDINGS = (".txt", ".csv", ".json", ".jsonl")
OF_NAMES = {"ss": "ss", "sockstat": "sockstat", "nstat": "nstat"}


@dataclass(frozen=True)
class Truth:
    """An input of a format: a file of its folder, or an entry of `TRUTHS` in its test."""

    format: str
    name: str
    content: bytes


def truths() -> list[Truth]:
    """Return the inputs of all formats."""
    inputs = []
    for folder in sorted(TRUTH.iterdir()):
        files = [path for path in sorted(folder.iterdir()) if path.suffix in ENDINGS]
        inputs += [Truth(folder.name, path.stem, path.read_bytes()) for path in files]
    for name in sorted(formats()):
        module = f"hosts.test_{name}"
        told = getattr(import_module(module), "TRUTHS", {}) if find_spec(module) else {}
        inputs += [Truth(name, each, text.encode()) for each, text in told.items()]
    return inputs


def test_every_format_has_a_truth() -> None:
    """Each format needs a test of its fields with inputs: files in `truth/FORMAT`, or `TRUTHS` in that test."""
    given = {truth.format for truth in truths()} | {path.parent.name for path in TRUTH.glob("*/*.toml")}
    assert given == set(formats())
    assert [name for name in formats() if not find_spec(f"hosts.test_{name}")] == []


@all_cases("truth", truths(), ids=lambda truth: f"{truth.format}-{truth.name}")
def test_a_truth_is_recognised(truth: Truth) -> None:
    assert SnapshotFile(truth.content).format == truth.format


@all_cases("truth", truths(), ids=lambda truth: f"{truth.format}-{truth.name}")
def test_only_one_format_is_sure_of_a_truth(truth: Truth) -> None:
    """With two equally confident formats, the name would decide."""
    stamps = Stamps()
    raw_lines = truth.content.decode("utf8").splitlines()
    head = list(islice(Lines(stamps.ahead(raw_lines), stamps=stamps), HEAD_LINES))
    scores = {name: each.recognise(head) for name, each in formats().items()}
    best = max(scores.values())
    assert all(0 <= score <= 100 for score in scores.values())
    assert [name for name, score in scores.items() if score == best] == [truth.format]


@all_cases(
    "text",
    [
        "Dear all,\n\nthe transfer is slow: 5 Mbit/s.\n",
        "{}\n",
        '{"scenario": {"name": "x"}}\n',
        "a,b,c\n1,2,3\n",
        "[snd/s0]\nqdisc tbf 802e: root refcnt 2 rate 100Mbit burst 3212b lat 1.34s\n Sent 6279164 bytes 4228 pkt\n",
        "12:00:00.000001 IP 10.0.0.1.80 > 10.0.0.2.1024: Flags [S], seq 1, win 64240, length 0\n",
        "<html><body>404</body></html>\n",
        "#!/bin/sh\nss -tmi\n",
    ],
)
def test_other_text_is_of_no_format(text: str) -> None:
    with pytest.raises(SnapshotError, match="not a known snapshot format"):
        SnapshotFile(text.encode())


def test_no_format_claims_nothing() -> None:
    assert recognise([]) is None
    assert recognise(["", " ", "\t"]) is None


def test_every_file_of_the_lab_is_recognised() -> None:
    wrong = {}
    for path in sorted(LAB_RUNS.glob("*/*_*.*")):
        kind = OF_NAMES.get(path.name.partition("_")[0])
        if kind is None or path.suffix not in (".txt", ".csv"):
            continue
        expected = "counter_csv" if path.suffix == ".csv" else kind
        found = SnapshotFile(path).format
        if found != expected:
            wrong[str(path)] = found
    assert wrong == {}
