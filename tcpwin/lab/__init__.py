"""The reference lab: programs that make TCP behave as published, and a real Linux kernel in virtual time to run them.

In: a scenario (a file), or a workload on your hosts. Out: bundles that `tcpwin.analyze` reads, with their ground truth.
It judges nothing; findings and comparison do.
"""

from tcpwin.lab.conversations import conversation, conversation_stories, conversation_story
from tcpwin.lab.expectation import Claim, ClaimError
from tcpwin.lab.kernel_build import DEFAULT_SERIES, SERIES, BuildError, build, build_needs, check_host, kernel_path
from tcpwin.lab.library import FAMILY_TITLES, Planned, families, finish_library, library, sweep_library
from tcpwin.lab.lift import LiftError, LiftResult, Times, check_liftable, lift_result, lift_scenario
from tcpwin.lab.lifts import LIFTS, Lift, lifted, lifts_of
from tcpwin.lab.like import scenario_like, series_like, series_of
from tcpwin.lab.needs import RunNeeds, run_needs
from tcpwin.lab.network import NetworkError, Step, plan
from tcpwin.lab.run import Outcome, check_engine, find_outcome, run_scenario
from tcpwin.lab.scenario import Scenario, ScenarioError, find_scenario, read_scenario, scenario_names, scenarios
from tcpwin.lab.settings import SettingsError, read_settings
from tcpwin.lab.sweep import FAMILIES, drawn, read_worlds, sweep
from tcpwin.lab.uml import UmlError, check_kernel
from tcpwin.lab.workload import DEFAULT_PORT, Log, Workload, workloads
from tcpwin.lab.worlds import STORIES, story, world

__all__ = [
    "DEFAULT_PORT",
    "DEFAULT_SERIES",
    "FAMILIES",
    "FAMILY_TITLES",
    "LIFTS",
    "SERIES",
    "STORIES",
    "BuildError",
    "Claim",
    "ClaimError",
    "Lift",
    "LiftError",
    "LiftResult",
    "Log",
    "NetworkError",
    "Outcome",
    "Planned",
    "RunNeeds",
    "Scenario",
    "ScenarioError",
    "SettingsError",
    "Step",
    "Times",
    "UmlError",
    "Workload",
    "build",
    "build_needs",
    "check_engine",
    "check_host",
    "check_kernel",
    "check_liftable",
    "conversation",
    "conversation_stories",
    "conversation_story",
    "drawn",
    "families",
    "find_outcome",
    "find_scenario",
    "finish_library",
    "kernel_path",
    "library",
    "lift_result",
    "lift_scenario",
    "lifted",
    "lifts_of",
    "plan",
    "read_scenario",
    "read_settings",
    "read_worlds",
    "run_needs",
    "run_scenario",
    "scenario_like",
    "scenario_names",
    "scenarios",
    "series_like",
    "series_of",
    "story",
    "sweep",
    "sweep_library",
    "workloads",
    "world",
]
