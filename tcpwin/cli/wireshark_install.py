"""`tcpwin wireshark install`: the plugin, in its place or on standard output."""

from __future__ import annotations

from pathlib import Path

import click

from tcpwin.output import open_whole

_NAME = "tcpwin.lua"


@click.command()
@click.option("--print", "is_printed", is_flag=True, help="Write the plugin to standard output.")
@click.option(
    "--to", "folder", type=click.Path(file_okay=False), metavar="FOLDER", help="Folder; default: your plugins in Lua."
)
def install(is_printed: bool, folder: str | None) -> None:
    """Write the plugin where Wireshark and tshark look for a user's plugins.

    It starts the tcpwin that wrote it: install it again after tcpwin has moved, and after an upgrade.
    """
    from tcpwin.render.wireshark import default_folder, plugin_text
    from tcpwin.units import name_text

    if is_printed and folder is not None:
        raise click.UsageError("--print and --to exclude each other")
    text = plugin_text()
    if is_printed:
        click.echo(text, nl=False)
        return
    place = default_folder() if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with open_whole(place / _NAME, errors="surrogateescape") as file:
        file.write(text)
    click.echo(f"{name_text(str(place / _NAME))}: Wireshark and tshark load it when they start next")
