"""The jobs of GitHub and GitLab: their scripts run as a runner does, except for the installation."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cli.command import TCPWIN
from live import HANG_S

ROOT = Path(__file__).parents[2]
SLOW, GOOD = "captures/lab/slow-reader.pcap.gz", "captures/wild/keep-alive.pcap"
yaml = pytest.importorskip("yaml")


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder that contains only copies of the captures."""
    (folder / "captures").symlink_to(ROOT / "captures")
    environment = {**os.environ, "PATH": f"{TCPWIN.parent}:{os.environ['PATH']}", **variables}
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_S, check=False, cwd=folder, env=environment
    )


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


def github(folder: Path, captures: str, arguments: str = "") -> subprocess.CompletedProcess[str]:
    script = action()["runs"]["steps"][1]["run"]
    given = {"CAPTURES": captures, "ARGUMENTS": arguments, "SARIF": "tcpwin.sarif"}
    return run(script, folder, **given, GITHUB_STEP_SUMMARY=str(folder / "summary.md"))


def gitlab(folder: Path, job: str, **variables: str) -> subprocess.CompletedProcess[str]:
    lines = yaml.safe_load((ROOT / "ci" / "tcpwin.gitlab-ci.yml").read_text())[job]["script"]
    return run("\n".join(lines[1:]), folder, **variables)


def test_the_action_hands_its_inputs_over_as_variables() -> None:
    """Inputs may come from a stranger: in the script's text, a shell would execute them."""
    found = action()
    assert not any("${{" in step["run"] for step in found["runs"]["steps"])
    used = "".join(str(step["env"]) for step in found["runs"]["steps"])
    assert all(f"inputs.{name} " in used for name in found["inputs"])


@pytest.mark.parametrize(("package", "installed"), [("", "/action"), ("tcpwin==0.1", "tcpwin==0.1")])
def test_the_action_installs_its_checkout_unless_a_package_is_named(
    package: str, installed: str, tmp_path: Path
) -> None:
    script = action()["runs"]["steps"][0]["run"].replace("python3 -m venv", "make_venv")
    pip = tmp_path / "tcpwin" / "bin" / "pip"
    fake = f'make_venv() {{ mkdir -p "$1/bin"; printf \'#!/bin/sh\\necho "$@"\' > {pip}; chmod +x {pip}; }}\n'
    names = {"RUNNER_TEMP": str(tmp_path), "GITHUB_PATH": str(tmp_path / "path")}
    done = run(fake + script, tmp_path, PACKAGE=package, CHECKOUT="/action", **names)
    assert (done.returncode, done.stdout) == (0, f"install --quiet {installed}\n"), done.stderr
    assert (tmp_path / "path").read_text() == f"{pip.parent}\n"


def test_pre_commit_checks_captures_only() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "tcpwin check"
    names = ("a.pcap", "b/c.pcapng.gz", "d.cap.zst", "e.pcap.txt", "capture.py")
    assert [name for name in names if re.search(hook["files"], name)] == ["a.pcap", "b/c.pcapng.gz", "d.cap.zst"]


def test_the_action_annotates_and_fails(tmp_path: Path) -> None:
    done = github(tmp_path, SLOW)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(("::warning", "::error"))
    document = json.loads((tmp_path / "tcpwin.sarif").read_text())
    assert document["runs"][0]["results"]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("```\n")
    assert "Limited by a slow reader" in summary


def test_the_action_succeeds_where_nothing_is_found_or_may_fail(tmp_path: Path) -> None:
    done = github(tmp_path, SLOW, "--fail-on never --select TW202")
    assert done.returncode == 0, done.stderr
    assert "TW201" not in done.stdout


def test_the_action_reads_the_projects_budget(tmp_path: Path) -> None:
    (tmp_path / "tcpwin.toml").write_text('[check]\nfail-on = "never"\n')
    assert github(tmp_path, SLOW).returncode == 0


def test_inputs_are_not_executed(tmp_path: Path) -> None:
    done = github(tmp_path, f"{SLOW}; touch run $(touch run) `touch run`")
    assert done.returncode != 0
    assert not (tmp_path / "run").exists()


def test_patterns_are_expanded(tmp_path: Path) -> None:
    done = github(tmp_path, "captures/lab/slow-reader*.gz")
    assert done.returncode == 1, done.stderr
    assert "slow-reader-receiver" in (tmp_path / "summary.md").read_text()


def test_gitlab_gets_test_cases_and_a_verdict(tmp_path: Path) -> None:
    done = gitlab(tmp_path, ".tcpwin-check", CAPTURES=SLOW, ARGUMENTS="")
    assert done.returncode == 1, done.stderr
    assert "Limited by a slow reader" in done.stdout
    assert list(ElementTree.parse(tmp_path / "tcpwin.xml").iter("failure"))


@pytest.mark.parametrize(("new", "status"), [(SLOW, 1), (GOOD, 0)])
def test_gitlab_compares(tmp_path: Path, new: str, status: int) -> None:
    done = gitlab(tmp_path, ".tcpwin-compare", OLD=GOOD, NEW=new, ARGUMENTS="")
    assert done.returncode == status, done.stdout + done.stderr


def release() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    return found


def test_the_release_builds_for_every_system_that_is_named() -> None:
    """Only GitHub can run it, so the test reads it."""
    targets = {each["target"] for each in release()["jobs"]["wheels"]["strategy"]["matrix"]["include"]}
    linux, mac = (
        {f"{cpu}-{system}" for cpu in ("x86_64", "aarch64")} for system in ("unknown-linux-gnu", "apple-darwin")
    )
    assert targets == linux | mac | {"x86_64-pc-windows-msvc"}


def test_the_release_trusts_no_text_and_grants_no_more_than_it_needs() -> None:
    found = release()
    assert found["permissions"] == {}
    steps = [step for job in found["jobs"].values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    assert not any("${{" in script for script in scripts)
    for script in scripts:
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
    # Only a pushed tag publishes, and only the publishing job may write to the repository.
    assert found["jobs"]["publish"]["if"] == "github.event_name == 'push'"
    writers = [name for name, job in found["jobs"].items() if job["permissions"]["contents"] == "write"]
    assert writers == ["publish"]


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["tcpwin-1.2.0-cp311-abi3-x.whl", "tcpwin-1.2.0.tar.gz", "tcpwin_web-1.2.0-py3-none-any.whl"], 0),
        (["tcpwin-1.2.0.tar.gz", "tcpwin-1.2.1.tar.gz"], 1),
        (["tcpwin-1.20.tar.gz"], 1),
        (["other-1.2.0.tar.gz"], 1),
    ],
)
def test_the_release_publishes_one_version(names: list[str], status: int, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    for name in names:
        (tmp_path / "dist" / name).touch()
    [script] = (step["run"] for step in release()["jobs"]["publish"]["steps"] if step.get("name") == "One version")
    assert run(script, tmp_path, TAG="v1.2.0").returncode == status
