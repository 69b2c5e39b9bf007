"""The command group. Commands are imported when they are called, so that `--version` and completion stay fast."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tcpwin.cli.io import complain
from tcpwin.errors import FilterError, OutputError, TcpwinError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "analyze": "Show what limited each connection, worst first.",
    "annotate": "Write a capture for Wireshark with comments on its packets.",
    "bdp": "Compute the window that a path needs, and the settings for it.",
    "check": "Apply rules: findings with evidence, cost, owner and fix.",
    "compare": "Compare two captures of the same workload: better or worse?",
    "doctor": "Show what works on this machine, and what is missing.",
    "exchanges": "Show requests and answers: the server's, the client's and the path's time.",
    "explain": "Explain a rule of `check`.",
    "fields": "List the fields of the JSON document and the columns.",
    "fleet": "Measure many captures into one data set, and query it in SQL.",
    "lab": "Run published experiments on two hosts, or in a kernel with virtual time.",
    "man": "Write the manual pages of the commands.",
    "mcp": "Serve captures to an agent over the Model Context Protocol.",
    "nstat": "Show how much network counters grew, and what they count.",
    "packets": "Write one row per TCP segment.",
    "pair": "Compare captures of both ends: where were packets lost?",
    "plot": "Draw a figure of one connection or of all.",
    "reference": "Compare with published results.",
    "report": "Write a report: one file with figures, readable offline.",
    "rules": "List the rules of `check`.",
    "slice": "Write packets of a connection, span or finding for Wireshark.",
    "snap": "Record this host's TCP sockets, counters and memory.",
    "ss": "Show sockets from snapshots, or the distribution of a field.",
    "watch": "Watch an interface until something stalls; keep the packets around it.",
    "whatif": "Predict the effect of a change: a setting, a lifted limit, another path.",
    "wireshark": "Show results in Wireshark, as fields of packets.",
}
"""The one-line help of each command; its code is the object of that name in the module of that name, or in `_HOMES`."""
_HOMES = {"annotate": "slice", "explain": "rules", "fields": "rules"}

CONFIGURED = ("check", "compare")
"""Commands whose defaults a settings file may give."""

COMMAND_GROUP = "tcpwin.commands"
"""Entry points through which other packages add commands: the command's name, and a click command."""

# numpy's linear algebra library, which is not used here, starts a thread for each core: a third of its import time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

EXIT_PROBLEM = 1
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_TERMINATED = 128 + signal.SIGTERM
"""Exit status as a shell reports it for a process ended by a signal."""


SCHEMA = "tcpwin/version/1"


def version_facts() -> dict[str, str]:
    """Return the versions of tcpwin, Python and the system."""
    import platform
    from pathlib import Path

    from tcpwin import version

    return {
        "version": version.__version__,
        "location": str(Path(version.__file__).parent),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


def keep_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Note that the version is wanted as JSON."""
    ctx.obj = value


def print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version and exit.

    Raises:
        UsageError: JSON is requested without the version.
    """
    if ctx.resilient_parsing:
        return
    if not value:
        if ctx.obj:
            raise click.UsageError("--json before a command goes with --version; commands have their own", ctx)
        return
    if ctx.obj:
        import json

        click.echo(json.dumps({"schema": SCHEMA, **version_facts()}, indent=1))
    else:
        from tcpwin.version import __version__

        click.echo(f"tcpwin {__version__}")
    ctx.exit()


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted([*COMMANDS, *(each.name for each in _added())])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command
        if cmd_name in COMMANDS:
            command = getattr(import_module(f"tcpwin.cli.{_HOMES.get(cmd_name, cmd_name)}"), cmd_name)
            return command
        for each in _added():
            if each.name == cmd_name:
                command = each.load()
                return command
        if cmd_name == "serve" and not ctx.resilient_parsing:
            raise OutputError("the dashboard is the package tcpwin-web: pip install 'tcpwin[web]'")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command to call: `analyze` for a file, and that of `tcpwin help COMMAND`."""
        name, *rest = args
        is_known = name in COMMANDS or name == "serve" or any(each.name == name for each in _added())
        if not is_known and not ctx.resilient_parsing:
            if name == "help":
                return self.resolve_command(ctx, [*rest, "--help"]) if rest else _show_help(ctx)
            if _is_file(name):
                args = ["analyze", *args]
            else:
                raise click.UsageError(f"{name[:100]!r} is neither a command nor a file{_hint(name)}", ctx)
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        with _reader_may_leave():
            return super().make_context(*args, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_may_leave():
            status = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return status

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            added = {each.name: each.load().get_short_help_str(limit=100) for each in _added()}
            formatter.write_dl(sorted({**added, **COMMANDS}.items()))


def _is_file(name: str) -> bool:
    """Return true for what can only be a capture: a path, an address, or standard input."""
    return name == "-" or "/" in name or "." in name or os.path.exists(name)  # noqa: PTH110 (names of any length)


def _hint(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name[:100].lower(), COMMANDS, n=1)
    return f": did you mean `tcpwin {close[0]}`?" if close else "; `tcpwin help` lists the commands."


def _show_help(ctx: click.Context) -> Any:
    click.echo(ctx.get_help())
    ctx.exit()


def _added() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=COMMAND_GROUP))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
# The eager option is handled first: the other one ends the program.
@click.option("--json", is_flag=True, expose_value=False, is_eager=True, callback=keep_json, help="Version as JSON.")
@click.option("-V", "--version", is_flag=True, expose_value=False, callback=print_version, help="Show the version.")
@click.option(
    "--config", metavar="FILE", help="Settings of `check` and `compare`; default: tcpwin.toml or pyproject.toml above."
)
@click.pass_context
def cli(ctx: click.Context, config: str | None) -> None:
    """Find what limited each TCP connection in a capture, what it cost, and what to change.

    Start with `tcpwin FILE`, which is `tcpwin analyze FILE`; `tcpwin help COMMAND` explains a command.

    Exit status: 0 success, 1 problem found (with --check or `check`), 2 wrong usage, 3 unreadable input or
    a selection that matches no packet.
    """
    if ctx.invoked_subcommand in CONFIGURED:
        from tcpwin.cli.settings_file import read_settings

        ctx.default_map = read_settings(config)
    elif config is not None:
        raise click.UsageError(f"--config goes with {' and '.join(CONFIGURED)}")


def _leave(*_: object) -> None:
    sys.exit(EXIT_TERMINATED)


def _terminate(*_: object) -> None:
    signal.raise_signal(signal.SIGTERM)


def _run(arguments: list[str] | None) -> Any:
    """Run a command, and flush standard output; help and version must be complete, too."""
    try:
        return cli.main(arguments, prog_name="tcpwin", standalone_mode=False)
    finally:
        _flush_output()


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End normally if the reader of our output left, as `head` does; click would exit with 1, as for a problem."""
    try:
        yield
    except BrokenPipeError:
        _drop_output()
        raise click.exceptions.Exit(0) from None


def _flush_output() -> None:
    """Write out what is buffered.

    Raises:
        OutputError: standard output cannot be written, such as on a full disk.
    """
    if sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        raise OutputError(f"standard output: {error.strerror}") from None


def _drop_output() -> None:
    """Discard buffered output: Python would try to write it at exit, complain, and exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    # Unpacked files must be deleted and changes to the host undone: the default handler would end the process at once.
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)
    # A terminal that was closed; Windows has no such signal.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)
    try:
        status: Any = _run(arguments)
    except click.UsageError as error:
        complain(error.format_message())
        if error.ctx is not None:
            click.echo(f"Try `{error.ctx.command_path} --help`.", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        complain(error.format_message())
        sys.exit(error.exit_code)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("tcpwin: interrupted", err=True)
        sys.exit(130)
    except FilterError as error:
        complain(str(error))
        sys.exit(EXIT_USAGE)
    except TcpwinError as error:
        complain(str(error))
        sys.exit(EXIT_UNREADABLE)
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        complain(f"{what}{error.strerror or error}")
        sys.exit(EXIT_UNREADABLE)
    sys.exit(status if isinstance(status, int) else 0)
