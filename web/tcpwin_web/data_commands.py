"""`tcpwin data`: back up, restore, and see what the retention policy would delete."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tcpwin.units import bytes_text, count_text
from tcpwin_web.server import read_settings

T = TypeVar("T")

_OPTIONS = (
    click.option(
        "--data", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path), help="Folder of all data."
    ),
    click.option(
        "--database-url", metavar="URL", help="Such as postgresql+psycopg://…; by default SQLite in the folder."
    ),
)


class _Failed(click.ClickException):
    exit_code = 3


def _of_service(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in _OPTIONS:
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Back up and restore the data of `tcpwin serve`; the settings are the same."""


@main.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--keys", is_flag=True, help="Include the secret by which share links replace addresses.")
@_of_service
def backup(out: Path, keys: bool, **options: Any) -> None:
    """Write all captures, results, links, notes and tokens to OUT, a new tar file. The service may run meanwhile."""
    from tcpwin_web.storage.backup import back_up

    async def work(database: Any, data: Any) -> Any:
        try:
            opened = os.open(out, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError as error:
            raise _Failed(f"{out}: {error.strerror}") from None
        with os.fdopen(opened, "wb") as file:
            return await back_up(database, data, file, keys=keys)

    copied = _run(options, work)
    click.echo(f"{out}: {_counts(copied)}")


@main.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_of_service
def restore(source: Path, **options: Any) -> None:
    """Restore a backup into an empty data folder and an empty database, while no service runs on them."""
    from tcpwin_web.storage.backup import restore as restore_from

    async def work(database: Any, data: Any) -> Any:
        data.prepare()
        try:
            await database.claim()
            await database.upgrade()
            with source.open("rb") as file:
                return await restore_from(database, data, file)
        finally:
            data.release()

    copied = _run(options, work)
    click.echo(_counts(copied))


@main.command()
@_of_service
def expired(**options: Any) -> None:
    """List what the service would delete now, by age and by size; it deletes nothing."""
    from tcpwin_web.retention import due

    settings = read_settings({name: value for name, value in options.items() if value is not None})

    async def work(database: Any, _: Any) -> Any:
        return await due(database, settings.retention_bytes)

    for each in _run(options, work):
        click.echo(f"{each.id}  {each.size_bytes:>15,}  {each.reason}  {each.name}")


def _counts(copied: Any) -> str:
    captures, files = count_text(copied.captures, "capture"), count_text(copied.files, "file")
    return f"{captures}, {files}, {bytes_text(copied.size_bytes)}"


def _run(options: dict[str, Any], work: Callable[[Any, Any], Awaitable[T]]) -> T:
    from sqlalchemy.exc import SQLAlchemyError

    from tcpwin.errors import TcpwinError
    from tcpwin_web.storage import Database, DataFolder
    from tcpwin_web.storage.database import EncodingError, InUseError

    settings = read_settings({name: value for name, value in options.items() if value is not None})

    async def run() -> T:
        database = Database(settings.url, sessions=3)
        try:
            return await work(database, DataFolder(settings.data))
        finally:
            await database.close()

    try:
        return asyncio.run(run())
    except (TcpwinError, InUseError, EncodingError) as error:
        raise _Failed(str(error)) from None
    except OSError as error:
        raise _Failed(f"{error.filename or settings.data}: {error.strerror or error}") from None
    except SQLAlchemyError as error:
        # Its text may contain the URL's password; the driver's message does not.
        raise _Failed(f"the database cannot be used: {getattr(error, 'orig', None) or error}") from None
