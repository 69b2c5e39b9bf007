"""Rules as a set: codes, names, thresholds and conditions; valid and faulty rules of other packages."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from cases import all_cases
from live import HANG_S

from tcpwin import _engine
from tcpwin.analysis import Capture
from tcpwin.limits import Rule, Severity, all_rules
from tcpwin.limits import rules as package
from tcpwin.limits.rule import SCOPES, all_outlines

TESTS = Path(__file__).parent
TCPWIN = Path(sys.executable).with_name("tcpwin")
CAPTURES = TESTS.parents[1] / "captures"
KEEP_ALIVE = CAPTURES / "wild" / "keep-alive.pcap"
SLOW_READER = CAPTURES / "lab" / "slow-reader.pcap.gz"
# Only tcpwin's rules: other installed packages may add more.
OWN = {
    name: import_module(f"{package.__name__}.{name}").RULE
    for _, name, _ in iter_modules(package.__path__)
    if not name.startswith("_")
}
FIELDS = {group: {name: kind for name, kind, _ in _engine.fields(group)} for group in ("connection", "direction")}
UNITS = {"ns", "bytes", "bps", "share", "count", "times"}
EACH = all_cases("name", OWN)


def asked_by(rule: Rule) -> list[tuple[str, str, str, float | str | bool | None]]:
    """Return scope, field, sign and value of every condition of a rule."""
    questions = (*rule.asks, (rule.scope, rule.when))
    return [(scope, *condition) for scope, conditions in questions for condition in conditions]


def test_all_are_found_in_the_order_of_their_codes() -> None:
    found = all_rules()
    assert {rule.code for rule in OWN.values()} <= set(found)
    assert list(found) == sorted(found)
    assert all(code == rule.code for code, rule in found.items())


def test_outlines_are_those_of_the_rules() -> None:
    rules = {rule.code: rule.outline for rule in OWN.values()}
    outlines = {each.code: each for each in all_outlines() if each.code in rules}
    assert {code: each.rule for code, each in outlines.items()} == {rule.code: rule for rule in OWN.values()}
    assert {code: replace(each, source=each.rule) for code, each in outlines.items()} == rules


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in OWN.values()}) == len(OWN)
    assert len({rule.name for rule in OWN.values()}) == len(OWN)


@EACH
def test_code_name_and_title(name: str) -> None:
    rule = OWN[name]
    assert re.fullmatch(r"TW[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert name == rule.name.replace("-", "_"), "the module is called as the rule"
    assert 0 < len(rule.title) <= 80
    assert rule.title.isprintable()
    assert not rule.title.endswith(".")
    assert isinstance(rule.severity, Severity)
    assert rule.scope in SCOPES


@EACH
def test_thresholds_have_units_and_reasons(name: str) -> None:
    for threshold_name, threshold in OWN[name].thresholds.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", threshold_name)
        assert threshold.unit in UNITS
        for unit in ("ns", "bytes", "bps"):
            assert (threshold_name.rpartition("_")[2] == unit) == (threshold.unit == unit), threshold_name
        assert math.isfinite(threshold.default)
        assert threshold.default >= 0
        assert threshold.unit != "share" or threshold.default <= 1
        assert len(threshold.reason.split()) >= 3
        assert threshold.reason.endswith((".", ".)")), threshold_name


@EACH
def test_conditions_are_on_fields_of_the_engine(name: str) -> None:
    rule = OWN[name]
    # Without a condition, Python would look at every connection of the capture.
    assert bool(rule.when) == (rule.scope != "capture")
    assert not rule.asks or rule.scope == "capture"
    assert not rule.counts or rule.scope == "capture"
    assert all(hasattr(Capture, each) or each in Capture.__dataclass_fields__ for each in rule.counts)
    for scope, field, operator, value in asked_by(rule):
        group, _, bare = field.rpartition(".")
        assert group in ("", "connection")
        where = "connection" if group or scope == "connection" else "direction"
        assert bare in FIELDS[where], field
        assert operator in {">=", "<=", ">", "<", "=="}
        if isinstance(value, str) and value.startswith("{"):
            assert value[1:-1] in rule.thresholds
        else:
            kinds = {"int": (int, float), "float": (int, float), "str": (str,), "bool": (bool,)}
            assert isinstance(value, kinds[FIELDS[where][bare]]) or (operator, value) == ("==", None), field


@EACH
def test_conditions_take_the_thresholds_in_force(name: str) -> None:
    rule = OWN[name]
    settings = {threshold: float(place) for place, threshold in enumerate(rule.thresholds)}
    named = {f"{{{threshold}}}": value for threshold, value in settings.items()}
    expected = [
        (scope, field, operator, named.get(str(value), value)) for scope, field, operator, value in asked_by(rule)
    ]
    questions = rule.outline.questions(settings)
    assert [(scope, *condition) for scope, conditions in questions for condition in conditions] == expected
    assert len(questions) == (len(rule.asks) if rule.scope == "capture" else 1)


@EACH
def test_each_has_its_tests(name: str) -> None:
    assert (TESTS / f"test_{OWN[name].code.lower()}.py").is_file()


SOUND = '''"""## What it finds

A capture.
"""

from tcpwin.limits import Case, Evidence, Rule, Severity


def judge(case):
    yield case.finding(f"{len(case.analysis)} connections", owner="nobody", confidence="certain")


RULE = Rule("ACME001", "acme-capture", "there is a capture", Severity.ERROR, "capture", judge, __doc__)
'''


def other_package(folder: Path, source: str | None, *, point: str = "acme = acme_rules") -> None:
    """Install a package with one entry point as pip does: a module and its distribution's metadata."""
    if source is not None:
        (folder / "acme_rules.py").write_text(source, encoding="utf8")
    info = folder / "acme_tcp-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tcp\nVersion: 1.0\n", encoding="utf8")
    (info / "entry_points.txt").write_text(f"[tcpwin.rules]\n{point}\n", encoding="utf8")


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TCPWIN, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(folder)},
        text=True,
        capture_output=True,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.parametrize("point", ["acme = acme_rules", "acme = acme_rules:RULE"])
def test_rule_of_another_package_is_checked(tmp_path: Path, point: str) -> None:
    other_package(tmp_path, SOUND, point=point)
    listed = json.loads(run(tmp_path, "rules", "--json").stdout)["rules"]
    assert {
        "code": "ACME001",
        "name": "acme-capture",
        "title": "there is a capture",
        "severity": "error",
        "scope": "capture",
        "thresholds": {},
    } in listed
    assert {rule.code for rule in OWN.values()} <= {each["code"] for each in listed}
    explained = run(tmp_path, "explain", "acme-capture")
    assert explained.stdout.splitlines() == [
        "ACME001 acme-capture: there is a capture",
        "error, checks the capture as a whole",
        "",
        "What it finds",
        "  A capture.",
    ]
    done = run(tmp_path, "check", KEEP_ALIVE, "--select", "ACME")
    assert done.returncode == 1
    assert after_the_summary(done.stdout) == [
        f"{KEEP_ALIVE} ACME001 acme-capture (error, certain): 1 connections",
        "    owner      nobody",
        "",
        "1 finding (1 error); 1 finding of other rules not shown; 1 rule checked on 1 connection.",
    ]


def after_the_summary(text: str) -> list[str]:
    """Return the lines below the paragraph about the capture."""
    return text.partition("\n\n")[2].splitlines()


def test_rule_of_the_page_about_rules_works(tmp_path: Path) -> None:
    """The handshake of SLOW_READER took 40 ms: below the default, above 30 ms."""
    page = (TESTS.parents[1] / "tcpwin" / "docs" / "findings.md").read_text(encoding="utf8")
    _, source = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    other_package(tmp_path, source)
    arguments = ("check", SLOW_READER, "--select", "slow-handshake", "--fail-on", "info")
    assert run(tmp_path, *arguments).returncode == 0
    done = run(tmp_path, *arguments, "--threshold", "ACME001.slow_ns=30ms")
    assert done.returncode == 1
    assert after_the_summary(done.stdout) == [
        f"{SLOW_READER}:#0 ACME001 slow-handshake (info, time lost 40 ms, certain): the handshake took 40 ms",
        "    ends       client 10.9.2.2:36984, server 10.9.1.1:5201",
        "    owner      the network",
        "    evidence   frame 1",
        "    values     handshake rtt 40 ms",
        "",
        "1 finding (1 info); 2 findings of other rules not shown; 1 rule checked on 1 connection.",
    ]


POINT = ", by the entry point acme = acme_rules of the package acme-tcp: "


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, f"{POINT}ModuleNotFoundError: No module named 'acme_rules'"),
        ("raise RuntimeError('no licence')", f"{POINT}RuntimeError: no licence"),
        ("import no_such_module", f"{POINT}ModuleNotFoundError: No module named 'no_such_module'"),
        ("RULES = []", f"{POINT}AttributeError: module 'acme_rules' has no attribute 'RULE'"),
        ("RULE = 5", f"{POINT}AttributeError: 'int' object has no attribute 'code'"),
        (
            SOUND.replace("ACME001", "TW201"),
            " (packages that bring rules: acme-tcp): ValueError: two rules are called TW201 or acme-capture",
        ),
        (
            SOUND.replace("ACME001", "acme-1"),
            " (packages that bring rules: acme-tcp): ValueError: rule acme-1 (acme-capture): a code is letters and "
            "three digits; a scope one of ('direction', 'connection', 'capture')",
        ),
    ],
    ids=["absent", "raises", "import", "no-rule", "not-a-rule", "code-taken", "code-malformed"],
)
@pytest.mark.parametrize(
    "arguments", [("rules",), pytest.param(("check", KEEP_ALIVE), marks=pytest.mark.nightly)], ids=["rules", "check"]
)
def test_broken_rule_of_another_package_is_one_sentence(
    tmp_path: Path, source: str | None, said: str, arguments: tuple[object, ...]
) -> None:
    other_package(tmp_path, source)
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"tcpwin: rules cannot be loaded{said}\n"


def test_rule_class_refuses_no_page() -> None:
    """A rule's page is the docstring of its module."""
    assert all(isinstance(rule, Rule) and rule.page for rule in OWN.values())
