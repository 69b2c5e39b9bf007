"""`tcpwin lab drive`: the end of a workload that connects and reads."""

from __future__ import annotations

from typing import Any

import click

from tcpwin.cli._lab_workloads import WorkloadGroup, make_command
from tcpwin.lab._workload import Log, Workload


def _make(workload: Workload) -> click.Command:
    def run(settings: Any, log: Log, others: dict[str, Any]) -> None:
        workload.drive((others["host"], others["port"]), settings, log)

    return make_command(workload, workload.drive_settings, run, click.Argument(["host"]))


drive = WorkloadGroup("drive", make=_make, help="Connect to the end that serves a workload, and read from it.")
