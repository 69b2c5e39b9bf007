"""No stage of the engine takes more instructions per packet, and no capture more cache misses, than its budget."""

from collections.abc import Callable

import pytest
from bench import stages
from bench.stages import Cost
from reference import OTHER_COMPILER

Measured = dict[str, dict[str, Cost]]


@pytest.fixture(scope="module")
def measured(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Return what tracking each shape costs."""
    tool("cargo")
    tool("valgrind")
    return stages.measure(tmp_path_factory.mktemp("stages"))


@pytest.mark.parametrize("shape", stages.SHAPES)
def test_each_stage_keeps_its_budget(measured: Measured, shape: str) -> None:
    assert stages.exceeded(measured[shape], stages.read_budget(), shape) == []


@pytest.mark.parametrize("stage", [*stages.STAGES, stages.TOTAL])
def test_five_percent_more_in_any_stage_exceeds_the_budget(measured: Measured, stage: str) -> None:
    def slower(costs: dict[str, Cost]) -> dict[str, Cost]:
        return {name: cost.times(1.05) if stage in (name, stages.TOTAL) else cost for name, cost in costs.items()}

    budget = stages.read_budget()
    if budget.compiler != stages.compiler():
        pytest.skip(f"{OTHER_COMPILER} Rust {budget.compiler}")
    assert any(stages.exceeded(slower(measured[shape]), budget, shape) for shape in stages.SHAPES)


def test_inlined_lines_and_libraries_count_for_the_files_that_use_them() -> None:
    profile = stages.Profile(
        """
events: Ir D1mr
fl=(1) /home/me/tcpwin/engine/src/output/lane.rs
fn=(1) take
10 100 1
fi=(2) /home/me/tcpwin/engine/src/tcp/tracker/fast.rs
20 40 2
fi=(3) /rustc/library/core/src/num.rs
5 2
cfi=(4) /rustc/library/core/src/option.rs
cfn=(2) map
calls=3 7
5 30
fe=(1)
11 8
cfi=(4)
cfn=(2)
calls=1 7
11 10
fl=(4)
fn=(2)
7 40 4
""".strip().splitlines()
    )
    assert profile.by_stage() == {"look-up": Cost(118, 2), "fast path": Cost(72, 5)}
