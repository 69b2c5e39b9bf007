"""`tcpwin doctor`: the features that work on this machine, and the requirements of the others."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from tcpwin.cli.program import EXIT_PROBLEM, version_facts
from tcpwin.errors import TcpwinError

READY, MISSING, BROKEN = "ready", "missing", "broken"
IMPORT_SECONDS = 60.0
_TOLD_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of tcpwin.

    Attributes:
        name: its name on the command line, and of the extra that installs it, if any (`pip install 'tcpwin[plot]'`).
        does: its use.
        packages: distributions with the module of each.
        install: the command that installs what is missing.
        look: returns what it found on the machine; raises TcpwinError if something is missing.
    """

    name: str
    does: str
    packages: tuple[tuple[str, str], ...] = ()
    install: str = ""
    look: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The state of a feature.

    Attributes:
        state: ``ready``, ``missing``, or ``broken``: installed, but does not load.
        found: packages with their versions, programs, systems.
        reason: why it is not ready, in a sentence; None if it is.
        install: the remedy; None if none is needed.
    """

    name: str
    does: str
    state: str
    found: tuple[str, ...]
    reason: str | None
    install: str | None


def _import_here() -> str:
    from tcpwin.errors import SourceError

    sources = Path("tcpwin")
    if (sources / "_engine.py").is_file() and not list(sources.glob("_engine.*[od]")):
        raise SourceError("`import tcpwin` in this folder finds sources without a compiled engine")
    return "no sources in this folder hide the installed package"


def _libpcap() -> str:
    import cypcap

    return str(cypcap.lib_version()).partition(" (")[0].replace("version ", "")


def _image_browser() -> str:
    from tcpwin.errors import OutputError
    from tcpwin.figures.drawing import find_browser

    if (found := find_browser()) is None:
        raise OutputError("neither Chromium nor Chrome is on the path")
    return found


def _printing_browser() -> str:
    from tcpwin.render.report import find_browser

    return find_browser()


def _sockets() -> str:
    from tcpwin.errors import SnapshotError
    from tcpwin.hosts.collect import SocketDump

    if not hasattr(socket, "AF_NETLINK"):
        raise SnapshotError("sockets can be listed by netlink on Linux only", "snap")
    SocketDump().close()
    return "netlink"


def _program(*names: str) -> Callable[[], str]:
    def look() -> str:
        from tcpwin.errors import SourceError

        path = "/usr/sbin:/sbin:/usr/local/sbin"
        found = next(filter(None, (shutil.which(name) or shutil.which(name, path=path) for name in names)), None)
        if found is None:
            raise SourceError(f"{' and '.join(names)} not installed")
        return found

    return look


def _lab() -> str:
    from tcpwin.lab import check_host

    check_host(None)
    return "Linux on x86-64 with a compiler"


def _extra(name: str) -> str:
    return f"pip install 'tcpwin[{name}]'"


_PLOTLY = (("plotly", "plotly"), ("tsdownsample", "tsdownsample"))
_PAGES = (("tsdownsample", "tsdownsample"), ("jinja2", "jinja2"))
_BROWSER = "apt install chromium"
FEATURES = (
    Feature("captures", "read and measure captures", (("tcpwin", "tcpwin._engine"), ("numpy", "numpy"))),
    Feature("import", "import tcpwin in this folder", install="cd elsewhere, or pip install -e .", look=_import_here),
    Feature("filter", "--filter in tcpdump's language", (("cypcap", "cypcap"),), _extra("filter"), _libpcap),
    Feature("scapy", "packets of scapy", (("scapy", "scapy"),), _extra("scapy")),
    Feature("dpkt", "readers of dpkt", (("dpkt", "dpkt"),), _extra("dpkt")),
    Feature("tables", "polars data frames, Parquet", (("polars", "polars"),), _extra("tables")),
    Feature("arrow", "Arrow tables", (("pyarrow", "pyarrow"),), _extra("arrow")),
    Feature("pandas", "pandas data frames", (("pandas", "pandas"), ("pyarrow", "pyarrow")), _extra("pandas")),
    Feature("plot", "figures as pages and data", _PLOTLY, _extra("plot")),
    Feature("report", "reports as HTML", _PAGES, _extra("report")),
    Feature(
        "image",
        "figures as PNG, SVG, PDF",
        (*_PLOTLY, ("kaleido", "kaleido")),
        f"{_extra('image')}; {_BROWSER}",
        _image_browser,
    ),
    Feature(
        "pdf",
        "reports as PDF",
        _PAGES,
        f"{_extra('report')}; {_BROWSER}",
        _printing_browser,
    ),
    Feature("fleet", "tcpwin fleet", (("pyarrow", "pyarrow"), ("duckdb", "duckdb")), _extra("fleet")),
    Feature("mcp", "tcpwin mcp", (("mcp", "mcp"),), _extra("mcp")),
    Feature("web", "tcpwin serve", (("tcpwin-web", "tcpwin_web"),), "pip install 'tcpwin[web]'"),
    Feature(
        "postgres",
        "the dashboard on PostgreSQL",
        (("tcpwin-web", "tcpwin_web"), ("psycopg", "psycopg")),
        "pip install 'tcpwin-web[postgres]'",
    ),
    Feature(
        "traces",
        "OpenTelemetry spans of the dashboard",
        (
            ("opentelemetry-sdk", "opentelemetry.sdk.trace"),
            ("opentelemetry-exporter-otlp-proto-http", "opentelemetry.exporter.otlp.proto.http"),
        ),
        "pip install 'tcpwin-web[otel]'",
    ),
    Feature("sockets", "tcpwin snap", look=_sockets),
    Feature("recording", "tcpwin snap --capture", install="apt install tcpdump", look=_program("tcpdump")),
    Feature("lab", "tcpwin lab build", look=_lab),
    Feature(
        "wireshark",
        "open the output of slice and annotate",
        install="apt install wireshark",
        look=_program("wireshark", "tshark"),
    ),
)
"""The features in the order of the report."""


def examine(features: Iterable[Feature] = FEATURES) -> list[State]:
    """Examine the state of these features."""
    wanted = list(features)
    modules = {module for feature in wanted for _, module in feature.packages}
    with ThreadPoolExecutor(4) as pool:
        failures = dict(zip(modules, pool.map(_import_failure, modules), strict=True))
    return [_state(feature, failures) for feature in wanted]


def _state(feature: Feature, failures: dict[str, str | None]) -> State:
    found: list[str] = []
    missing: list[str] = []
    broken: list[str] = []
    for distribution, module in feature.packages:
        try:
            number = version(distribution)
        except PackageNotFoundError:
            missing.append(distribution)
            continue
        found.append(f"{distribution} {number}")
        if failures[module]:
            broken.append(f"{distribution} {number} does not load: {failures[module]}")
    reason = None
    if broken:
        reason = "; ".join(broken)
    elif missing:
        reason = f"{', '.join(missing)} not installed"
    elif feature.look is not None:
        try:
            found.append(feature.look())
        except TcpwinError as error:
            reason = str(error)
    state = BROKEN if broken else READY if reason is None else MISSING
    install = feature.install if reason is not None and feature.install else None
    return State(feature.name, feature.does, state, tuple(found), reason, install)


def _import_failure(module: str) -> str | None:
    """Return the last line of Python's message on an import that fails."""
    # Without -P the current folder, where a stranger's captures may be, is searched for modules first.
    command = [sys.executable, "-P", "-c", f"import {module}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=IMPORT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"its import takes more than {IMPORT_SECONDS:.0f} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.decode("utf8", "replace").strip().splitlines()
    return (lines[-1] if lines else f"Python ended with {done.returncode}")[:_TOLD_CHARACTERS]


SCHEMA = "tcpwin/doctor/1"
_NAMES = [feature.name for feature in FEATURES]


@click.command()
@click.argument("features", nargs=-1, type=click.Choice(_NAMES), metavar="[FEATURE]...")
@click.option("--json", "as_json", is_flag=True, help="Write the answer as JSON.")
def doctor(features: tuple[str, ...], as_json: bool) -> int:
    """Show which features of tcpwin work on this machine, and what the others need.

    With FEATURE, check only these, each of which must be ready.

    Exit status: 0 all is well, 1 something installed does not load, or a FEATURE is not ready. Other features may be
    missing.
    """
    states = examine(feature for feature in FEATURES if not features or feature.name in features)
    is_well = all(each.state == READY if features else each.state != BROKEN for each in states)
    if as_json:
        document: dict[str, Any] = {"schema": SCHEMA, "is_well": is_well, **version_facts()}
        click.echo(json.dumps({**document, "features": [asdict(each) for each in states]}, indent=1))
    else:
        facts = version_facts()
        click.echo(f"tcpwin {facts['version']} in {facts['location']}")
        click.echo(f"{facts['implementation']} {facts['python']} on {facts['system']} {facts['machine']}\n")
        for each in states:
            for line in _lines(each):
                click.echo(line)
    return 0 if is_well else EXIT_PROBLEM


def _lines(each: State) -> list[str]:
    lines = [f"{each.state:<8} {each.name:<10} {each.does}"]
    if each.found:
        lines[0] += f": {', '.join(each.found)}"
    if each.reason is not None:
        lines.append(f"{'':<20}{each.reason}{'' if each.install is None else f': {each.install}'}")
    return lines
