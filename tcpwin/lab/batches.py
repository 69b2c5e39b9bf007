"""Batched steps: iproute2 commands for one namespace share one `ip -batch` or `tc -batch`.

In: the steps of a plan. Out: fewer steps with the same effect. Starting a program costs tens of milliseconds in the
lab's kernel, a line of a batch almost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcpwin.lab.network import Step, run

_ROOM = 3
"""Words before the actual command: the program, -n and the namespace."""


def batched(steps: Iterable[Step]) -> list[Step]:
    """Order the steps: namespaces, devices, each namespace's addresses and queues, then steps that are not commands."""
    spaces: list[Step] = []
    lines: dict[tuple[str, ...], list[Sequence[str]]] = {("ip",): []}
    others: list[Step] = []
    for step in steps:
        if step.argv[1:2] == ("netns",):
            spaces.append(step)
        elif not step.argv:
            others.append(step)
        elif step.argv[1] == "-n":
            lines.setdefault(step.argv[:_ROOM], []).append(step.argv[_ROOM:])
        else:
            lines[step.argv[:1]].append(step.argv[1:])
    # Queues last: their device must exist.
    ordered = sorted(lines.items(), key=lambda each: each[0][0] == "tc")
    return [*spaces, *(_batch(program, commands) for program, commands in ordered), *others]


def _batch(program: tuple[str, ...], commands: list[Sequence[str]]) -> Step:
    text = "".join(f"{' '.join(words)}\n" for words in commands)
    argv = (*program, "-batch", "-")
    return Step(f"{' '.join(argv)}\n{text}", lambda: run(*argv, stdin=text))
