"""`tcpwin lab drive`: the end of a workload that connects and reads."""

from __future__ import annotations

import socket
from typing import Any

import click

from tcpwin.cli.lab_workloads import WorkloadGroup, make_command
from tcpwin.lab import Log, Workload


def _make(workload: Workload) -> click.Command:
    def run(settings: Any, log: Log, others: dict[str, Any]) -> None:
        try:
            workload.drive((others["host"], others["port"]), settings, log)
        except (ConnectionError, TimeoutError, socket.gaierror) as error:
            error.filename = f"{others['host']}, port {others['port']}"
            raise

    return make_command(workload, workload.drive_settings, run, click.Argument(["host"]))


drive = WorkloadGroup("drive", make=_make, help="Connect to the end that serves a workload, and read from it.")
