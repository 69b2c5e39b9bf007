"""`tcpwin check --baseline`: known findings are excluded from every format; new or larger ones are not."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli.command import CAPTURES, SLOW_READER, refused, tcpwin
from spread import some_by_day

LOSSY = CAPTURES / "lab" / "loss-1-percent.pcap.gz"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with two captures, in which the baseline is written."""
    shutil.copy(SLOW_READER, tmp_path / "slow.pcap.gz")
    shutil.copy(LOSSY, tmp_path / "lossy.pcap.gz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(*arguments: object) -> tuple[int, dict[str, Any]]:
    done = tcpwin("check", *arguments, "--format", "json")
    assert done.stderr == b""
    return done.returncode, json.loads(done.stdout)


def known(file: Path) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads(file.read_text())
    assert document["schema"] == "tcpwin/baseline/1"
    rows: list[dict[str, Any]] = document["known"]
    return rows


def test_known_findings_are_left_out(project: Path) -> None:
    status, before = checked("slow.pcap.gz")
    codes = [each["code"] for each in before["findings"]]
    assert (status, before["known"]) == (1, 0)
    done = tcpwin("check", "slow.pcap.gz", "--write-baseline", "base.json")
    assert (done.returncode, done.stdout.decode()) == (0, f"base.json: {len(codes)} findings known\n")
    assert sorted(codes) == [each["code"] for each in known(project / "base.json")]
    assert {each["capture"] for each in known(project / "base.json")} == {"slow.pcap.gz"}
    status, after = checked("slow.pcap.gz", "--baseline", "base.json")
    assert (status, after["findings"], after["counts"], after["known"]) == (0, [], {}, len(codes))
    # Accepting findings leaves the verdict unchanged.
    assert after["verdict"] == before["verdict"]
    assert after["connections"] == before["connections"]


def test_new_and_grown_findings_fail(project: Path) -> None:
    tcpwin("check", "slow.pcap.gz", "--write-baseline", "base.json")
    file = project / "base.json"
    rows = known(file)

    def status_with(rows: list[dict[str, Any]]) -> tuple[int, int]:
        file.write_text(json.dumps({"schema": "tcpwin/baseline/1", "known": rows}))
        status, document = checked("slow.pcap.gz", "--baseline", "base.json")
        return status, len(document["findings"])

    cost_ns = rows[0]["cost_ns"]
    assert status_with(rows) == (0, 0)
    assert status_with([*rows[1:], {**rows[0], "cost_ns": int((cost_ns - 200_000_000) / 1.25) + 1}]) == (0, 0)
    assert status_with([*rows[1:], {**rows[0], "cost_ns": int((cost_ns - 200_000_000) / 1.25) - 1}]) == (1, 1)
    for change in ({"count": 0}, {"port": 9}, {"direction": "a_to_b"}, {"capture": "lossy.pcap.gz"}, {"code": "TW999"}):
        assert status_with([{**rows[0], **change}, *rows[1:]]) == (1, 1), change
    assert status_with([]) == (1, len(rows))


def codes_in(told: str, form: str) -> list[str]:
    if form == "sarif":
        return [result["ruleId"] for run in json.loads(told)["runs"] for result in run["results"]]
    return re.findall(
        {"text": r"→\S+ (TW\d+)", "github": r"title=(TW\d+)", "junit": r'name="(TW\d+)[^>]*>\s*<failure'}[form], told
    )


@pytest.mark.parametrize("form", some_by_day(["text", "sarif", "github", "junit"], of=2))
def test_every_format_leaves_them_out(form: str, project: Path) -> None:
    captures = ("slow.pcap.gz", "lossy.pcap.gz")
    tcpwin("check", "slow.pcap.gz", "--write-baseline", "base.json")
    done = tcpwin("check", *captures, "--baseline", "base.json", "--format", form)
    assert done.returncode == 1
    told = done.stdout.decode()
    assert codes_in(told, form) == [each["code"] for each in checked("lossy.pcap.gz")[1]["findings"]]
    tcpwin("check", *captures, "--write-baseline", project / "base.json")
    assert {each["capture"] for each in known(project / "base.json")} == set(captures)
    assert tcpwin("check", *captures, "--baseline", "base.json", "--format", form).returncode == 0
    if form == "text":
        said = tcpwin("check", "slow.pcap.gz", "--baseline", "base.json").stdout.decode()
        assert "No new findings; 2 known findings not shown; " in said


def test_the_settings_name_it_from_their_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tcpwin("check", "slow.pcap.gz", "--write-baseline", "base.json")
    (project / "tcpwin.toml").write_text('[check]\nbaseline = "base.json"\n')
    below = project / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert checked(Path("..") / "slow.pcap.gz")[0] == 0
    assert checked("../lossy.pcap.gz")[0] == 1


def test_no_capture_is_written_over(project: Path) -> None:
    before = (project / "slow.pcap.gz").read_bytes()
    for captures in (["slow.pcap.gz"], ["lossy.pcap.gz", "slow.pcap.gz"], ["."]):
        said = refused("check", *captures, "--write-baseline", "slow.pcap.gz", status=2)
        assert "slow.pcap.gz is also an input file" in said
    assert (project / "slow.pcap.gz").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file or directory; `tcpwin check --write-baseline base.json` writes it"),
        ("{}", "base.json is damaged"),
        ("[]", "base.json is not a baseline"),
        ('{"schema": "tcpwin/baseline/9"}', "base.json is not a baseline"),
        ('{"schema": "tcpwin/baseline/1", "known": [{}]}', "base.json is damaged"),
        ('{"schema": "tcpwin/baseline/1", "known": 7}', "base.json is damaged"),
        ("[" * 100_000, "base.json is damaged"),
        (
            '{"schema": "tcpwin/baseline/1", "known": [{"capture": "a", "code": "TW201", "direction": null, '
            '"port": null, "count": -1, "cost_ns": 0}]}',
            "base.json is damaged",
        ),
    ],
)
def test_invalid_baselines(text: str | None, words: str, project: Path) -> None:
    if text is not None:
        (project / "base.json").write_text(text)
    assert words in refused("check", "slow.pcap.gz", "--baseline", "base.json")
