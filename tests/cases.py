"""Run a quick check on every case within one test, and report every case that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from traceback import extract_tb
from typing import Any

import pytest
import spread

Ids = Callable[[Any], object] | Sequence[str] | None


def all_cases(
    names: str | Sequence[str],
    values: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    ids: Ids = None,
    of: int = 1,
    first: int = 0,
) -> Callable[[Any], Any]:
    """Take the place of `pytest.mark.parametrize` for checks that cost less than a test's set-up.

    The cases share the fixtures of one test. A function of values is called when the test runs, not at its import.
    By day one case in `of` is checked, from the case `first` on; at night all of them (`spread.py`).
    """
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)

    given = values if callable(values) else list(values)

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def named() -> Iterator[tuple[object, dict[str, Any]]]:
            step, start = (1, 0) if spread.is_night else (of, first)
            for place, case in list(enumerate(given() if callable(given) else given))[start::step]:
                name = ids[place] if isinstance(ids, Sequence) else ids(case) if ids else repr(case)[:200]
                yield name, dict(zip(fields, [case] if len(fields) == 1 else case, strict=True))

        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            check_all(check, named(), fixtures)

        signature = inspect.signature(check)
        others = [value for name, value in signature.parameters.items() if name not in fields]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        if of > 1:
            run.does_more_at_night = True  # type: ignore[attr-defined]
        return run

    return decorate


def check_all(
    check: Callable[..., None], cases: Iterable[tuple[object, dict[str, Any]]], fixtures: dict[str, Any]
) -> None:
    """Run a check with the arguments of each named case, then fail with every case that failed."""
    failures = []
    for name, arguments in cases:
        try:
            check(**arguments, **fixtures)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other cases must still run
            lines = [each.lineno for each in extract_tb(error.__traceback__) if each.name == check.__name__]
            failures.append(f"[{name}], line {lines[-1:]}: {type(error).__name__}: {error}")
    if failures:
        pytest.fail(f"{len(failures)} cases:\n" + "\n".join(failures), pytrace=False)
