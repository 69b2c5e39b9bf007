"""Steps in fewer programs: commands of iproute2 for one namespace go to one `ip -batch` or `tc -batch`.

In: the steps of a plan. Out: fewer that do the same. A program costs tens of milliseconds in the lab's kernel, a line
of a batch hardly anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcpwin.lab.network import Step, run

_ROOM = 3
"""Words before the command itself: the program, -n and the namespace."""


def batched(steps: Iterable[Step]) -> list[Step]:
    """Namespaces, devices, then each namespace's addresses and queues, then what is no command, in the plan's order."""
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
    # Queues last: a device must be there.
    ordered = sorted(lines.items(), key=lambda each: each[0][0] == "tc")
    return [*spaces, *(_batch(program, commands) for program, commands in ordered), *others]


def _batch(program: tuple[str, ...], commands: list[Sequence[str]]) -> Step:
    text = "".join(f"{' '.join(words)}\n" for words in commands)
    argv = (*program, "-batch", "-")
    return Step(f"{' '.join(argv)}\n{text}", lambda: run(*argv, told=text))
