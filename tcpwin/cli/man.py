"""`tcpwin man`: manual pages, where man looks for them."""

from __future__ import annotations

from pathlib import Path

import click

from tcpwin.cli.manual import SECTION, manual_pages
from tcpwin.cli.program import cli
from tcpwin.output import open_whole


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Folder for the pages; default: ~/.local/share/man/man1.",
)
def man(folder: str | None) -> None:
    """Write a manual page of each command, for `man tcpwin` and `man tcpwin-check`.

    The pages say what --help says. Packagers write them to their own folder with --to.
    """
    from tcpwin import __version__
    from tcpwin.units import count_text, name_text

    place = Path.home() / ".local" / "share" / "man" / f"man{SECTION}" if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, text in manual_pages(cli, "tcpwin", __version__):
        with open_whole(place / name) as file:
            file.write(text)
        count += 1
    click.echo(f"{name_text(str(place))}: {count_text(count, 'page')}")
