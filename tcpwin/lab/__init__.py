"""The reference lab: programs that make TCP behave as published, and a real Linux kernel in virtual time to run them.

In: a scenario (a file), or a workload on hosts of your own. Out: bundles that `tcpwin.analyze` reads, with what is true
of them. It judges nothing: that is what findings and comparison are for.
"""

from tcpwin.lab._build import BuildError, build, kernel_path
from tcpwin.lab._claim import Claim, ClaimError
from tcpwin.lab._like import scenario_like
from tcpwin.lab._needs import RunNeeds, run_needs
from tcpwin.lab._network import NetworkError, Step, plan
from tcpwin.lab._run import Outcome, find_outcome, run_scenario
from tcpwin.lab._scenario import Scenario, ScenarioError, find_scenario, read_scenario, scenario_names, scenarios
from tcpwin.lab._settings import SettingsError
from tcpwin.lab._uml import UmlError, check_kernel
from tcpwin.lab._workload import Workload, workloads

__all__ = [
    "BuildError",
    "Claim",
    "ClaimError",
    "NetworkError",
    "Outcome",
    "RunNeeds",
    "Scenario",
    "ScenarioError",
    "SettingsError",
    "Step",
    "UmlError",
    "Workload",
    "build",
    "check_kernel",
    "find_outcome",
    "find_scenario",
    "kernel_path",
    "plan",
    "read_scenario",
    "run_needs",
    "run_scenario",
    "scenario_like",
    "scenario_names",
    "scenarios",
    "workloads",
]
