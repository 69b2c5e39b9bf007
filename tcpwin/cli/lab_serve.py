"""`tcpwin lab serve`: the end of a workload that listens and sends."""

from __future__ import annotations

import socket
from typing import Any

import click

from tcpwin.cli.lab_workloads import WorkloadGroup, make_command
from tcpwin.cli.program import complain
from tcpwin.lab import Log, Workload

_BACKLOG = 4096


def _make(workload: Workload) -> click.Command:
    def run(settings: Any, log: Log, others: dict[str, Any]) -> None:
        family = socket.AF_INET6 if ":" in others["listen"] else socket.AF_INET
        with socket.create_server((others["listen"], others["port"]), family=family, backlog=_BACKLOG) as listener:
            complain(f"listening on {others['listen']}, port {listener.getsockname()[1]}")
            workload.serve(listener, settings, log)

    listen = click.Option(["--listen"], default="127.0.0.1", show_default=True, help="The address to listen on.")
    return make_command(workload, workload.serve_settings, run, listen)


serve = WorkloadGroup(
    "serve", make=_make, help="Wait for a workload's reader, send to it, and leave when that one run is over."
)
