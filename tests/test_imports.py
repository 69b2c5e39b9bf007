"""Stages import each other from packages, never from a file in them."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from analysis.bundled import WHOLE
from cases import all_cases

import tcpwin
import tcpwin_web

LIBRARY = Path(tcpwin.__file__).parent
SERVICE = Path(tcpwin_web.__file__).parent
FILES = sorted([*LIBRARY.rglob("*.py"), *SERVICE.rglob("*.py")])


def stage_of(path: Path) -> str:
    """Return the folder of the library that contains a file, or the service."""
    return path.relative_to(LIBRARY).parts[0] if path.is_relative_to(LIBRARY) else "tcpwin_web"


def is_package(module: str) -> bool:
    """Return whether a name is that of a folder of modules."""
    spec = find_spec(module)
    return spec is not None and spec.submodule_search_locations is not None


def imports_of_files(source: str, stage: str) -> Iterator[str]:
    """Return imports of other stages' modules by their file names."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tcpwin."):
            continue
        module = node.module or ""
        parts = module.split(".")
        if is_package(".".join(parts[:2])) and parts[1] != stage and not is_package(module):
            yield module


@all_cases("path", FILES, ids=lambda path: f"{stage_of(path)}-{path.stem}")
def test_other_stages_are_imported_from_their_packages(path: Path) -> None:
    assert list(imports_of_files(path.read_text(), stage_of(path))) == []


def test_an_import_from_a_file_is_seen() -> None:
    source = "def f():\n    from tcpwin.limits.verdict import Verdict\n"
    assert list(imports_of_files(source, "report")) == ["tcpwin.limits.verdict"]
    assert list(imports_of_files(source, "limits")) == []


@all_cases(
    "package",
    sorted({path.parent for path in LIBRARY.rglob("__init__.py")} - {LIBRARY}),
    ids=lambda folder: ".".join(folder.relative_to(LIBRARY).parts),
)
def test_exported_names_exist(package: Path) -> None:
    name = ".".join(("tcpwin", *package.relative_to(LIBRARY).parts))
    module = __import__(name, fromlist=["*"])
    for offered in getattr(module, "__all__", ()):
        assert getattr(module, offered) is not None


@all_cases("stub", sorted(LIBRARY.rglob("__init__.pyi")), ids=lambda stub: stub.parent.name)
def test_no_lazy_name_is_that_of_a_file(stub: Path) -> None:
    """An import of the file would hide the package's attribute of that name."""
    names = {each.name for node in ast.parse(stub.read_text()).body for each in getattr(node, "names", ())}
    assert names.isdisjoint(path.stem for path in stub.parent.iterdir())


def test_numpy_is_not_loaded_for_captures_too_large_to_read_again() -> None:
    """Importing it takes as long as reading a million packets, and twenty megabytes.

    A few rules need whole columns: of merged segments, and of resets after a close.
    """
    program = """
import sys, tcpwin
from tcpwin.limits import check
loading = [path for path in sys.argv[1:] if check(tcpwin.analyze(path), rereads=False) and "numpy" in sys.modules]
sys.exit(f"first loaded for {loading[0]}" if loading else 0)
"""
    paths = [path for path in WHOLE if path.name in ("slow-reader-receiver.pcap.gz", "lossy-path-receiver.pcap.gz")]
    subprocess.run([sys.executable, "-c", program, *map(str, paths)], check=True)
