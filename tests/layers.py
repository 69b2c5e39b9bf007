"""Draw the layers of the library, the dashboard and the engine; exit 1 if packages import each other in a cycle.

A package is a folder or a module directly under a root. Every import counts: at the top of a file, in a function, in
`if TYPE_CHECKING`, in a stub, and modules named in strings, such as "tcpwin.figures:draw". Test modules of the
engine do not count: they may use any stage.

    layers.py           print the diagrams
    layers.py --write   also put them into ARCHITECTURE.md
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = "ARCHITECTURE.md"
BEGIN, END = "<!-- `just layers` writes from here -->\n```text\n", "```\n<!-- to here -->"


@dataclass
class Tree:
    """The packages directly under one root.

    Attributes:
        name: the root as other files import it.
        imports: each package with those that it imports.
        places: one `file:line` for each import from one package to another.
    """

    name: str
    imports: dict[str, set[str]] = field(default_factory=dict)
    places: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, package: str, target: str, place: str) -> None:
        """Note that a package imports another."""
        self.imports.setdefault(target, set())
        if package != target:
            self.imports[package].add(target)
            self.places.setdefault((package, target), place)

    def reached(self, package: str) -> set[str]:
        """Return every package that one imports, directly or through others."""
        found: set[str] = set()
        waiting = [package]
        while waiting:
            new = self.imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    def cycles(self) -> list[list[str]]:
        """Return the sets of packages that import each other, directly or through others."""
        reached = {package: self.reached(package) for package in self.imports}
        groups = {
            tuple(sorted({package, *(other for other in reached[package] if package in reached[other])}))
            for package in reached
            if package in reached[package]
        }
        return [list(group) for group in sorted(groups)]

    def layers(self) -> list[list[str]]:
        """Return the packages from top to bottom: each imports only from the lines below its own."""
        groups = {package: tuple(cycle) for cycle in self.cycles() for package in cycle}
        group_of = {package: groups.get(package, (package,)) for package in self.imports}
        below = {
            group: {group_of[each] for one in group for each in self.imports[one]} - {group}
            for group in group_of.values()
        }
        level: dict[tuple[str, ...], int] = {}
        for group in TopologicalSorter(below).static_order():
            level[group] = 1 + max((level[each] for each in below[group]), default=-1)
        return [
            sorted(" ⇄ ".join(group) for group in level if level[group] == number)
            for number in range(max(level.values()), -1, -1)
        ]


def read_python(folder: Path) -> Tree:
    """Read which packages of a Python package import each other."""
    tree = Tree(folder.name)
    files = [
        path
        for kind in ("*.py", "*.pyi")
        for path in folder.rglob(kind)
        if "engine" not in path.relative_to(folder).parts
    ]
    tree.imports = {package_of(path, folder): set() for path in files}
    for path in files:
        dotted = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        for module, line in python_modules(path.read_text(encoding="utf-8"), dotted):
            root, _, rest = module.partition(".")
            first = rest.partition(".")[0]
            if root == folder.name:
                target = first if first in tree.imports else root
            elif root == "tcpwin_web" and folder.name == "tcpwin":
                target = root
            else:
                continue
            tree.add(
                package_of(path, folder),
                target,
                f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}",
            )
    return tree


def package_of(path: Path, folder: Path) -> str:
    """Return the folder or module directly under a root that a file belongs to."""
    first = path.relative_to(folder).parts[0].partition(".")[0]
    return folder.name if first == "__init__" else first


def python_modules(source: str, dotted: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the absolute names that a file imports, or names in strings, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = [*dotted[: -node.level]] if node.level else []
            base += [node.module] if node.module else []
            yield from ((".".join([*base, each.name]), node.lineno) for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = re.fullmatch(r"(tcpwin(?:_web)?(?:\.\w+)+)(?::\w+)?", node.value)
            if name and is_module(name[1]):
                yield name[1], node.lineno


def is_module(dotted: str) -> bool:
    """Return whether a dotted name is a module of this repository."""
    base = ROOT / "web" if dotted.startswith("tcpwin_web") else ROOT
    path = base.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def read_rust(folder: Path) -> Tree:
    """Read which modules of a crate, directly under its root, use each other."""
    tree = Tree("crate")
    files = [path for path in folder.rglob("*.rs") if "tests" not in path.relative_to(folder).parts]
    tree.imports = {rust_package(path, folder): set() for path in files}
    modules = {package for package in tree.imports if package != "lib"}
    for path in files:
        package = rust_package(path, folder)
        text = rust_code(path.read_text(encoding="utf-8"))
        for module, line in rust_modules(text, rust_path(path, folder)):
            if module in modules:
                tree.add(package, module, f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}")
    return tree


def rust_package(path: Path, folder: Path) -> str:
    """Return the module directly under the crate's root that a file belongs to."""
    return path.relative_to(folder).parts[0].removesuffix(".rs")


def rust_path(path: Path, folder: Path) -> list[str]:
    """Return the path of the module that a file holds, from the crate's root."""
    parts = [*path.relative_to(folder).with_suffix("").parts]
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def rust_code(text: str) -> str:
    """Blank out comments, strings and test modules, leaving every line in its place."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    text = re.sub(r'//[^\n]*|/\*.*?\*/|r#+".*?"#+|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', blank, text, flags=re.DOTALL)
    while start := re.search(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ *\{", text):
        depth, end = 1, start.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = text[: start.start()] + "\n" * text.count("\n", start.start(), end) + text[end:]
    return text


def rust_modules(code: str, module: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the first segment below the crate's root of every `crate::` and `super::` path, with its line."""
    for found in re.finditer(r"\b(crate|super(?:\s*::\s*super)*)\s*::\s*(\{|\w+)", code):
        line = code.count("\n", 0, found.start()) + 1
        depth = len(module) - found[1].count("super")
        if found[1] != "crate" and depth > 0:
            continue
        names = group_heads(code, found.end()) if found[2] == "{" else [found[2]]
        yield from ((name, line) for name in names)


def group_heads(code: str, start: int) -> list[str]:
    """Return the first segment of each path of a `{…}` group that opened just before `start`."""
    heads, depth, is_first = [], 1, True
    for token in re.finditer(r"\w+|[{},]", code[start:]):
        if token[0] == "}":
            depth -= 1
        elif token[0] == "{":
            depth += 1
        elif token[0] == ",":
            is_first = depth == 1
        elif is_first:
            heads.append(token[0])
            is_first = False
        if not depth:
            break
    return heads


def read_all(root: Path = ROOT) -> dict[str, Tree]:
    """Read the library, the dashboard and the engine of a checkout."""
    return {
        "tcpwin": read_python(root / "tcpwin"),
        "web/tcpwin_web": read_python(root / "web" / "tcpwin_web"),
        "tcpwin/engine/src": read_rust(root / "tcpwin" / "engine" / "src"),
    }


def diagram(trees: dict[str, Tree]) -> str:
    """Return the layers of each tree, from top to bottom."""
    lines: list[str] = []
    for name, tree in trees.items():
        lines += ["", f"{name}/"] if lines else [f"{name}/"]
        lines += [
            f"{number:>3}  {'   '.join(layer)}" for number, layer in reversed([*enumerate(reversed(tree.layers()), 1)])
        ]
    return "\n".join(lines) + "\n"


def with_diagram(page: str, drawn: str) -> str:
    """Return a page with the diagram between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{drawn}{END}{after}"


def main() -> int:
    """Print the layers; return 1 if there is a cycle, or an import of the dashboard in the library."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also put the diagrams into ARCHITECTURE.md")
    is_written = parser.parse_args().write
    trees = read_all()
    drawn = diagram(trees)
    print(drawn, end="")
    if is_written:
        page = ROOT / PAGE
        page.write_text(with_diagram(page.read_text(encoding="utf-8"), drawn), encoding="utf-8")
    wrong = False
    for name, tree in trees.items():
        for cycle in tree.cycles():
            wrong = True
            print(f"\n{name}: {', '.join(cycle)} import each other", file=sys.stderr)
            for (package, target), place in sorted(tree.places.items()):
                if package in cycle and target in cycle:
                    print(f"  {package} → {target}  {place}", file=sys.stderr)
    for place in (place for (_, target), place in trees["tcpwin"].places.items() if target == "tcpwin_web"):
        wrong = True
        print(f"\nthe library imports the dashboard: {place}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
