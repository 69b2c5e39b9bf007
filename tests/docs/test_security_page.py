"""SECURITY.md has no sentence without a test: `security.toml` maps each."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
UNTESTED = ("advice", "introduction", "what is not protected")


def claims() -> list[str]:
    """The sentences and the rows of the tables."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", (ROOT / "SECURITY.md").read_text(encoding="utf8")):
        if block.startswith("#"):
            continue
        if block.startswith("|"):
            found += [line.strip("| ") for line in block.splitlines()[2:]]
            continue
        for item in re.split(r"\n(?=- )", block):
            text = " ".join(item.removeprefix("- ").split())
            found += re.split(r"(?<=[.:])\s+(?=[A-Z`*])", text)
    return [claim for claim in found if claim]


def table() -> dict[str, list[str] | str]:
    sections = tomllib.loads((TESTS / "docs" / "security.toml").read_text(encoding="utf8"))
    return {start: shown for section in sections.values() for start, shown in section.items()}


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf8"))
    return frozenset(each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_sentence_is_in_the_table_once() -> None:
    starts = table()
    for claim in claims():
        assert len([start for start in starts if claim.startswith(start)]) == 1, claim
    for start in starts:
        assert [claim for claim in claims() if claim.startswith(start)], f"no sentence begins so: {start}"


def test_each_test_of_the_table_exists() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf8")
    for start, shown in table().items():
        if isinstance(shown, str):
            assert shown in UNTESTED or (shown.startswith("ci: ") and shown[4:] in run), start
            continue
        assert shown, start
        for test in shown:
            file, _, name = test.partition("::")
            assert name in functions(file), f"{start}: {test}"
