"""The service uses only the library's public names, which do not begin with an underscore."""

import ast
from pathlib import Path

import pytest

import tcpwin_web

FILES = sorted(Path(tcpwin_web.__file__).parent.rglob("*.py"))


def private_uses(source: str) -> list[str]:
    """Return private names imported from tcpwin, and private attributes except of ``self``, ``cls`` and ``os``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tcpwin":
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            found += [name for name in names if name.startswith("_")]
        elif isinstance(node, ast.Import):
            parts = [each.name.split(".") for each in node.names]
            found += [".".join(each) for each in parts if each[0] == "tcpwin" and any(x.startswith("_") for x in each)]
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found += [] if owner in ("self", "cls", "os") else [node.attr]
    return found


def test_no_private_name_of_the_library_is_used() -> None:
    uses = {path.name: private_uses(path.read_text()) for path in FILES}
    assert {name: used for name, used in uses.items() if used} == {}


@pytest.mark.parametrize(
    "source",
    ["from tcpwin import _engine", "from tcpwin.render.x import _typed", "import tcpwin._engine", "analysis._engine.y"],
)
def test_private_uses_are_seen(source: str) -> None:
    assert private_uses(source) != []
