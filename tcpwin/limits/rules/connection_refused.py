"""## What it finds

Several connections to one port were refused: a RST answered the SYN.

## Why it matters

Nothing listens on the port, or a device on the path answers for the host. No TCP setting helps.

## How it is judged

The destination refused at least `connections` to the same address and port.

## When it is wrong

Programs that try several addresses at once (RFC 8305) expect one to be refused. A firewall that rejects with a RST
looks like a host on which nothing listens.

## What to do

On that host, check that the service runs and which address it listens on; then check the firewall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tcpwin.limits.case import Case
from tcpwin.limits.evidence.ports import attempts
from tcpwin.limits.finding import Evidence, Finding, Remedy, Severity
from tcpwin.limits.rule import Rule, Threshold
from tcpwin.units import count_text


def judge(case: Case) -> Iterator[Finding]:
    for each in attempts(case, case.settings["connections"]):
        refused = tuple(connection for connection in each.connections if connection.reset_by == "b")
        if not refused or len(refused) < case.settings["connections"]:
            continue
        found = replace(each, connections=refused)
        why = (
            f"{count_text(found.accepted, 'other was', 'others were')} accepted, so it was down for a while or its "
            "queue was full"
            if found.accepted
            else "nothing seems to listen there"
        )
        yield case.finding(
            f"{found.port} refused {count_text(len(refused), 'connection')}: {why}",
            owner="application",
            side="b",
            confidence="likely",
            cost_ns=sum(connection.duration_ns for connection in refused),
            evidence=Evidence(
                frames=found.frames,
                start_ns=found.start_ns,
                end_ns=found.end_ns,
                values={"port": str(found.port), "refused": len(refused), "accepted": found.accepted},
                ruled_out="Not ruled out: a firewall that answers with a RST.",
            ),
            remedy=Remedy(
                f"Check on {found.port.address} that the service runs and listens on port {found.port.port}.",
                settings=(f"ss -tlnp sport = :{found.port.port}",),
            ),
        )


RULE = Rule(
    code="TW502",
    name="connection-refused",
    title="connections refused by a port",
    severity=Severity.WARNING,
    scope="capture",
    asks=(("connection", (("close", "==", "refused"),)),),
    limits=("handshake",),
    judge=judge,
    page=__doc__,
    thresholds={
        "connections": Threshold(
            3, "count", "A program that tries several addresses (RFC 8305) may have one or two refused."
        ),
    },
)
