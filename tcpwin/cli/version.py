"""`tcpwin --version`, as text and as JSON."""

from __future__ import annotations

import click

SCHEMA = "tcpwin/version/1"
_AS_JSON = "tcpwin.version_as_json"


def version_facts() -> dict[str, str]:
    """Which tcpwin runs on what."""
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
    ctx.meta[_AS_JSON] = value


def print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version and end.

    Raises:
        UsageError: JSON is asked for, and no version.
    """
    if ctx.resilient_parsing:
        return
    if not value:
        if ctx.meta.get(_AS_JSON):
            raise click.UsageError("--json before a command goes with --version; commands have their own", ctx)
        return
    if ctx.meta.get(_AS_JSON):
        import json

        click.echo(json.dumps({"schema": SCHEMA, **version_facts()}, indent=1))
    else:
        from tcpwin.version import __version__

        click.echo(f"tcpwin {__version__}")
    ctx.exit()
