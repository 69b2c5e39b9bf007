"""The `tcpwin-web` command: captures in, a service on a loopback address out.

The service knows no login, so it never listens on an address that others can reach.
"""

import ipaddress
from pathlib import Path

import click

from tcpwin_web import create_app


def _loopback(_context: click.Context, _parameter: click.Parameter, host: str) -> str:
    try:
        good = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        good = False
    if not good:
        raise click.BadParameter(f"{host!r} is not a loopback address, and the service knows no login yet")
    return host


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("captures", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, callback=_loopback, help="Loopback address.")
@click.option("--port", default=8642, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.version_option(package_name="tcpwin-web")
def main(captures: tuple[Path, ...], host: str, port: int) -> None:
    """Serve CAPTURES (files, or folders of captures) as pages and as JSON."""
    import uvicorn  # loaded after the options are known to be good

    uvicorn.run(create_app(captures), host=host, port=port)
