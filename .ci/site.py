"""What the site has beside the pages of tcpwin/docs: pages from elsewhere in the repository, and those made from code.

A hook of mkdocs. A page keeps the links that it has in the repository: they are turned into the site's here.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from mkdocs.structure.files import File, Files

import tcpwin
from tcpwin.cli.program import cli
from tcpwin.hosts.format import formats
from tcpwin.limits import all_rules, describe_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).parents[1]
DOCS = "tcpwin/docs"
BROUGHT = {
    "README.md": "readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "web/README.md": "dashboard.md",
    "tests/benchmark/README.md": "benchmark.md",
    "tcpwin/analysis/schema.json": "schemas/analysis.json",
    "tcpwin/pairing/schema.json": "schemas/pairing.json",
    **{f"notebooks/{path.name}": f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")},
    **{f"web/images/{path.name}": f"images/web/{path.name}" for path in (ROOT / "web" / "images").glob("*.webp")},
}
"""Where each file of the repository stands on the site."""

ORIGINS = {site: origin for origin, site in BROUGHT.items()}
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in the place of `FOLDER/*`."""

    def filled(entry: Any) -> list[Any]:
        if isinstance(entry, dict):
            return [{title: [each for part in parts for each in filled(part)] for title, parts in entry.items()}]
        if entry == "rules/*":
            return ["rules/index.md", *(f"rules/{code}.md" for code in all_rules())]
        if entry.endswith("/*"):
            pages = {path.relative_to(ROOT / DOCS).as_posix() for path in (ROOT / DOCS).glob(f"{entry}.md")}
            return sorted(pages | set(format_pages()) if entry == "hosts/*" else pages)
        return [entry]

    config.nav = [each for entry in config.nav or [] for each in filled(entry)]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add what is brought and what is made."""
    for origin, site in BROUGHT.items():
        files.append(File.generated(config, site, abs_src_path=str(ROOT / origin)))
    made = {"api.md": api_page(), "rules/index.md": rules_page()}
    made |= {f"rules/{code}.md": rule_page(rule) for code, rule in all_rules().items()}
    made |= format_pages()
    for site, text in made.items():
        files.append(File.generated(config, site, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Turn links of the repository into links of the site; add the options of every command."""
    here = page.file.src_uri
    if here == "commands.md":
        markdown += commands_text()
    origin = ORIGINS.get(here, f"{DOCS}/{here}")

    def turned(found: re.Match[str]) -> str:
        before, link, anchor, after = found.groups()
        if "://" in link or link.startswith("mailto:"):
            return found[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
        site = BROUGHT.get(target, target.removeprefix(f"{DOCS}/"))
        return f"{before}{posixpath.relpath(site, posixpath.dirname(here) or '.')}{anchor or ''}{after}"

    parts = CODE.split(markdown)
    return "".join(part if index % 2 else LINK.sub(turned, part) for index, part in enumerate(parts))


def api_page() -> str:
    """Return the page of the package's top level: functions first, then types, then errors."""

    def rank(name: str) -> tuple[int, str]:
        thing = getattr(tcpwin, name)
        return (0 if not isinstance(thing, type) else 2 if issubclass(thing, Exception) else 1), name

    names = sorted(tcpwin.__all__, key=rank)
    told = "\n\n".join(f"::: tcpwin.{name}" for name in names)
    return (
        f"# API\n\nEverything that `import tcpwin` offers. [The library](library.md) shows how it is used.\n\n{told}\n"
    )


def rules_page() -> str:
    """Return the list of all rules."""
    rows = [
        f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity} | {rule.title} |"
        for rule in all_rules().values()
    ]
    head = ["| code | name | severity | finds |", "|---|---|---|---|"]
    said = "What `tcpwin check` can find, as `tcpwin explain CODE` prints it. [How a finding is read](../findings.md)."
    return "\n".join(["# Rules", "", said, "", *head, *rows, ""])


def rule_page(rule: Any) -> str:
    """Return the page of one rule, with its thresholds."""
    told = describe_page(rule)
    lines = [f"# {rule.code} {rule.name}", "", f"*{rule.severity}*: {rule.title}", "", told["page"], ""]
    if told["thresholds"]:
        lines += ["## Thresholds", "", "| name | default | unit | why |", "|---|---|---|---|"]
        for name, each in told["thresholds"].items():
            lines.append(f"| `{name}` | {each['default']:,} | {each['unit']} | {each['reason']} |")
        lines += ["", f"`tcpwin check --threshold {rule.code}.NAME=VALUE` sets one."]
    return "\n".join([*lines, ""])


def format_pages() -> dict[str, str]:
    """Return pages of snapshot formats that have none in the repository, from their modules' docstrings."""
    return {
        f"hosts/{name}.md": f"# {each.title}\n\n{inspect.getdoc(inspect.getmodule(each.read))}\n"
        for name, each in formats().items()
        if not (ROOT / DOCS / "hosts" / f"{name}.md").exists()
    }


def commands_text() -> str:
    """Return what every command says of itself."""
    told = ["", "## All options", ""]
    for path, command in _commands(cli, ("tcpwin",)):
        context = click.Context(command, info_name=" ".join(path), terminal_width=100, max_content_width=100)
        told += [f"### {' '.join(path)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(told)


def _commands(group: click.Group, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], click.Command]]:
    found: list[tuple[tuple[str, ...], click.Command]] = []
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found += _commands(command, (*path, name))
        elif command is not None:
            found.append(((*path, name), command))
    return found
