"""`tcpwin man`: manual pages, where man looks for them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click

from tcpwin.cli.manual import SECTION, manual_pages
from tcpwin.cli.program import cli
from tcpwin.output import open_whole

_BELOW = Path("share") / "man" / f"man{SECTION}"


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder for the pages; default: share/man/man1 beside the folder in which tcpwin is, or of ~/.local.",
)
def man(folder: str | None) -> None:
    """Write a manual page of each command, for `man tcpwin` and `man tcpwin-check`.

    The pages say what --help says. Packagers write them to their own folder with --to.
    """
    from tcpwin.units import count_text, name_text
    from tcpwin.version import __version__

    place = _default() if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in manual_pages(cli, "tcpwin", __version__):
        with open_whole(place / name) as file:
            file.write(text)
        count += 1
    click.echo(f"{name_text(str(place))}: {count_text(count, 'page')}")
    if folder is None and not _is_found():
        click.echo(f"man looks elsewhere: MANPATH={name_text(str(place.parent))}: man tcpwin")


def _default() -> Path:
    """Where man looks for pages of what is in a folder of the PATH."""
    called = shutil.which("tcpwin")
    beside = None if called is None else Path(called).absolute().parent.parent
    return (beside if beside is not None and os.access(beside, os.W_OK) else Path.home() / ".local") / _BELOW


def _is_found() -> bool:
    """Whether man finds the pages; where there is no man, nobody looks."""
    if shutil.which("man") is None:
        return True
    found = subprocess.run(["man", "-w", "tcpwin"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return found.returncode == 0
