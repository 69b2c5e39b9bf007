"""A rule from another package, installed by its entry point, changes verdicts on every surface; its failure affects no
other rule.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cli.command import CAPTURES, KEEP_ALIVE, TCPWIN
from live import HANG_S
from spread import some_by_day

PAUSED = CAPTURES / "runs" / "app_limited" / "snd.pcap.gz"

RULE = '''"""## What it finds

Messages that wait for an acknowledgment.
"""

from tcpwin.limits import Evidence, Finding, Remedy, Rule, Severity


def judge(case):
    finding = Finding(
        code="ACME002",
        name="acme-wait",
        severity=Severity.WARNING,
        text="messages waited for an ACK",
        connection=case.connection.id,
        direction=case.direction,
        owner="server_application",
        side="server",
        cost_ns=case.data.budget_application_ns,
        lost_bps=None,
        confidence="likely",
        evidence=Evidence(frames=(4,)),
        remedy=Remedy("Write whole messages."),
        limits=("delayed_ack",),
    )
    yield finding
    FAILURE


RULE = Rule(
    code="ACME002",
    name="acme-wait",
    title="messages wait",
    severity=Severity.WARNING,
    scope="direction",
    judge=judge,
    page=__doc__ or "",
    limits=("delayed_ack",),
)
'''


def install(folder: Path, source: str) -> None:
    (folder / "acme_rules.py").write_text(source, encoding="utf8")
    info = folder / "acme_tcp-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tcp\nVersion: 1.0\n", encoding="utf8")
    (info / "entry_points.txt").write_text("[tcpwin.rules]\nacme = acme_rules\n", encoding="utf8")


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [str(TCPWIN), *map(str, arguments)]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=HANG_S, check=False)


def test_a_rule_of_another_package_moves_the_verdict(tmp_path: Path) -> None:
    """The server's application had nothing to send for 14.8 s; the rule attributes this to waiting for ACKs."""
    bare = run(tmp_path, "analyze", PAUSED, "--json", "--check")
    install(tmp_path, RULE.replace("    FAILURE\n", ""))
    told = run(tmp_path, "analyze", PAUSED, "--json", "--check")
    assert (bare.returncode, told.returncode) == (0, 1)
    before, after = (json.loads(each.stdout) for each in (bare, told))
    assert (before["verdict"]["limit"], before["verdict"]["is_problem"]) == ("sender_application", False)
    verdict = after["verdict"]
    assert (verdict["limit"], verdict["owner"], verdict["fix"]) == (
        "delayed_ack",
        "server_application",
        "Write whole messages.",
    )
    spent_ns = after["connections"][0]["budget"][verdict["direction"]]["items_ns"]["application"]
    assert verdict["cost_ns"] == verdict["lost_ns"] == spent_ns
    assert after["connections"][0]["verdict"] == verdict
    text = run(tmp_path, "analyze", PAUSED).stdout
    assert "delayed ACKs" in text
    assert "Write whole messages." in text
    checked = run(tmp_path, "check", PAUSED, "--format", "json")
    assert checked.returncode == 1
    assert json.loads(checked.stdout)["verdict"] == verdict


@pytest.mark.parametrize("failure", some_by_day(["1 / 0", "raise SystemError('worn out')"], of=2))
def test_a_rule_that_fails_leaves_the_others(tmp_path: Path, failure: str) -> None:
    bare = json.loads(run(tmp_path, "check", KEEP_ALIVE, "--format", "json").stdout)
    install(
        tmp_path,
        RULE.replace("FAILURE", failure)
        .replace("    yield finding\n", "")
        .replace("judge(case):", "judge(case):\n    yield from ()"),
    )
    done = run(tmp_path, "check", KEEP_ALIVE, "--format", "json")
    assert done.returncode == 0
    assert "ACME002 (acme-wait) failed" in done.stderr
    told = json.loads(done.stdout)
    assert len(told["failed"]) == 1
    assert "ACME002" in told["failed"][0]
    assert (told["findings"], told["connections"], told["verdict"]) == (
        bare["findings"],
        bare["connections"],
        bare["verdict"],
    )
