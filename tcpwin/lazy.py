"""Names that are imported on first use: those of a package (PEP 562), and functions that a later stage provides."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # Importing typing would cost as much as the interpreter's own start.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attach(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package whose stub, `__init__.pyi`, imports each public name.

    The stub is the only list of these names: type checkers read it as well.
    """
    homes: dict[str, str] = {}

    def known() -> dict[str, str]:
        if not homes:
            homes.update(_homes(package))
        return homes

    def load(name: str) -> Any:
        if name == "__all__":
            return [each for each in known() if not each.startswith("__")]
        if name not in known():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: [*known()]


def _homes(package: str) -> dict[str, str]:
    """Return the module that each public name of a package is imported from, by its stub.

    Each line of a stub is ``from MODULE import NAME as NAME``: splitting it takes a tenth of the time of parsing it.
    """
    file = sys.modules[package].__file__
    assert file is not None
    # pathlib takes longer to import than all stubs to read.
    with open(file[: -len("py")] + "pyi", encoding="utf-8") as stub:  # noqa: PTH123
        lines = [line.split() for line in stub]
    return {words[3]: words[1] for words in lines if words}


_later: dict[str, str] = {}


def provide(**functions: str) -> None:
    """Register functions of later stages, as ``module:function``, under the names that earlier stages call."""
    _later.update(functions)


def provided(name: str) -> Any:
    """Return the function that a later stage provides under a name."""
    from importlib import import_module

    module, _, function = _later[name].partition(":")
    return getattr(import_module(module), function)
