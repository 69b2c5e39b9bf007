"""`tcpwin lab serve` and `drive`: the two ends of a workload on separate hosts."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import click

from tcpwin.cli.io import complain
from tcpwin.lab import DEFAULT_PORT, Log, Workload, read_settings, workloads

_TYPES: dict[str, Any] = {"int": int, "float": float, "bool": bool, "tuple[int, ...]": int}


class WorkloadGroup(click.Group):
    """A command for each workload, created by `make` on demand."""

    def __init__(self, *args: Any, make: Callable[[Workload], click.Command], **more: Any) -> None:
        super().__init__(*args, **more)
        self._make = make

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(workloads())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        found = workloads().get(cmd_name)
        return None if found is None else self._make(found)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Workloads"):
            formatter.write_dl([(each.name, each.title) for each in workloads().values()])


def make_command(
    workload: Workload, kind: type, run: Callable[[Any, Log, dict[str, Any]], None], *others: click.Parameter
) -> click.Command:
    """Create a command with the settings of one end as options, and its log on standard output or in a file."""

    def call(**values: Any) -> None:
        mine = {each.name: values.pop(each.name) for each in fields(kind)}
        settings: Any = read_settings(kind, mine, where=workload.name)
        with _log(values.pop("log")) as log:
            run(settings, log, values)

    log = click.Option(["--log"], default="-", metavar="FILE", help="Write the log here (JSON lines), not to stdout.")
    port = click.Option(["--port"], type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True)
    options = [_option(each) for each in fields(kind)]
    return click.Command(
        workload.name,
        callback=call,
        params=[*others, port, log, *options],
        help=workload.page,
        short_help=workload.title,
    )


@contextmanager
def _log(name: str) -> Iterator[Log]:
    if name == "-":
        yield Log(sys.stdout)
        return
    with Path(name).open("w", encoding="utf8") as out:
        log = Log(out)
        yield log
    complain(", ".join(f"{key} {value}" for key, value in log.summary.items()))


def _option(each: Field[Any]) -> click.Option:
    return click.Option(
        [f"--{each.name.replace('_', '-')}", each.name],
        type=_TYPES[str(each.type)],
        default=each.default,
        multiple=str(each.type).startswith("tuple"),
        show_default=True,
        help=each.metadata["help"],
    )


def _make_drive(workload: Workload) -> click.Command:
    def run(settings: Any, log: Log, others: dict[str, Any]) -> None:
        try:
            workload.drive((others["host"], others["port"]), settings, log)
        except (ConnectionError, TimeoutError, socket.gaierror) as error:
            error.filename = f"{others['host']}, port {others['port']}"
            raise

    return make_command(workload, workload.drive_settings, run, click.Argument(["host"]))


drive = WorkloadGroup("drive", make=_make_drive, help="Connect to the end that serves a workload, and read from it.")


_BACKLOG = 4096


def _make_serve(workload: Workload) -> click.Command:
    def run(settings: Any, log: Log, others: dict[str, Any]) -> None:
        family = socket.AF_INET6 if ":" in others["listen"] else socket.AF_INET
        with socket.create_server((others["listen"], others["port"]), family=family, backlog=_BACKLOG) as listener:
            complain(f"listening on {others['listen']}, port {listener.getsockname()[1]}")
            workload.serve(listener, settings, log)

    listen = click.Option(["--listen"], default="127.0.0.1", show_default=True, help="The address to listen on.")
    return make_command(workload, workload.serve_settings, run, listen)


serve = WorkloadGroup(
    "serve", make=_make_serve, help="Wait for a workload's reader, send to it, and exit after that run."
)
