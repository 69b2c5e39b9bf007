"""`tcpwin man`: a page per command with the content of --help, checked with man and mandoc."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from cli.command import TCPWIN, tcpwin
from live import HANG_S
from spread import some_by_day

from tcpwin.cli.man import manual_pages
from tcpwin.cli.program import cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("man1")
    done = tcpwin("man", "--to", folder)
    assert done.stdout.decode() == f"{folder}: {len(list(folder.iterdir()))} pages\n"
    return folder


def contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from contexts(click.Context(command, info_name=name, parent=context))


COMMANDS = list(contexts(click.Context(cli, info_name="tcpwin", **cli.context_settings)))


def words(text: str) -> list[str]:
    """Return only letters and digits, because line ends, quotes and indents differ."""
    return re.findall(r"[\w/.-]*\w", text)


def rendered(mandoc: str, page: Path) -> str:
    command = [mandoc, "-T", "utf8", "-O", "width=1000", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG_S)
    return re.sub(".\b", "", done.stdout)


def test_every_command_has_its_page(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {
        f"{context.command_path.replace(' ', '-')}.1" for context in COMMANDS
    }


@pytest.mark.parametrize("context", COMMANDS, ids=lambda context: context.command_path)
def test_a_page_says_what_help_says(context: click.Context, folder: Path, tool: Callable[[str], str]) -> None:
    page = folder / f"{context.command_path.replace(' ', '-')}.1"
    text = " ".join(words(rendered(tool("mandoc"), page)))
    for paragraph in (context.command.help or "").replace("Exit status:", "").split("\n\n"):
        assert " ".join(words(paragraph)) in text
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            assert " ".join([*words(record[0]), *words(record[1])]) in text
    assert "EXIT STATUS 0 " in text


def test_mandoc_has_nothing_to_say(folder: Path, tool: Callable[[str], str]) -> None:
    command = [tool("mandoc"), "-T", "lint", "-W", "style", *map(str, sorted(folder.iterdir()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    # A date would differ between builds.
    assert [line for line in done.stdout.splitlines() if 'missing date, using ""' not in line] == []


def test_man_finds_a_page(tmp_path: Path, folder: Path, tool: Callable[[str], str]) -> None:
    (tmp_path / "man1").symlink_to(folder)
    command = [tool("man"), "-P", "cat", "-M", str(tmp_path), "tcpwin-check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert "tcpwin-check" in done.stdout


def test_what_would_be_a_request_is_text(tool: Callable[[str], str], tmp_path: Path) -> None:
    """Dots, quotes and backslashes are roff syntax."""
    text = r".so /etc/passwd and 'quoted \fBnot bold\fR -1 `code`."

    @click.group(help=f"{text}\n\nExit status: 0 success.")
    def group() -> None: ...

    [(name, page)] = manual_pages(group, "made", "1")
    (tmp_path / name).write_text(page)
    shown = rendered(tool("mandoc"), tmp_path / name)
    assert r".so /etc/passwd and 'quoted \fBnot bold\fR -1 code." in shown


@pytest.mark.parametrize("is_on_path", some_by_day([True, False], of=2))
def test_pages_are_installed_where_man_looks_or_the_path_is_printed(
    is_on_path: bool, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    man = tool("man")
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "tcpwin").symlink_to(TCPWIN)
    path = f"{home / 'bin'}:/usr/bin:/bin" if is_on_path else "/usr/bin:/bin"
    environment = {"HOME": str(home), "PATH": path}
    done = subprocess.run(
        [home / "bin" / "tcpwin", "man"], env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    place, *hint = done.stdout.splitlines()
    above = home if is_on_path else home / ".local"
    assert place.startswith(f"{above / 'share/man/man1'}: ")
    if not is_on_path:
        assert hint == [f"man looks elsewhere: MANPATH={above / 'share/man'}: man tcpwin"]
        environment["MANPATH"] = f"{above / 'share/man'}:"
    else:
        assert hint == []
    found = subprocess.run(
        [man, "-w", "tcpwin-check"], env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert found.stdout.strip() == str(above / "share/man/man1/tcpwin-check.1")
