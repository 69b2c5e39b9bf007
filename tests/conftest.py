"""Shared set-up of all tests: which tcpwin is tested, which skips are allowed, and where other captures are.

In CI (the variable CI is set) a test may be skipped only if reference captures are absent, if permissions or the kernel
do not allow it, if a lab kernel is not built, or if a budget is that of another compiler. Any other skip fails.
"""

import fcntl
import gc
import os
import re
import shutil
import signal
import sys
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import spread
from hypothesis import HealthCheck, is_hypothesis_test, settings
from reference import ABSENT, AS_ROOT, KERNEL_LACKS, NO_LAB, NO_RIGHT, OTHER_COMPILER, REFERENCE_CAPTURES, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

PACKAGES = {"initdb": "postgresql", "java": "default-jre-headless", "man": "man-db", "ss": "iproute2"}
"""Debian's packages of programs with other names."""

MOST_ANALYSES, MOST_CONNECTIONS = 20, 10
"""How many of a test's analyses are checked for impossible statements, and how many connections of each."""

UNSEEN = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "SpareRendererForSitePerProcess"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "MediaRouter"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled"),
    "PreconnectToSearch",
)
"""Chromium features that no test needs: address-bar lists and built-in pages take a third of a page's cost.

Chromium obeys only the last such list, so this one includes Playwright's.
"""

BROWSER = pytest.StashKey[tuple["Browser", ExitStack]]()
BROWSED = pytest.StashKey[set[Path]]()
"""Files with tests that use the browser."""

SLOW = ("browser", "wheel", "make_server", "make_client")
"""Slow fixtures; the one of the longest files comes first."""

# Nearly all that a collection makes stays until the end: looking for garbage in between takes a fifth of its time.
gc.disable()

# A shell's background job ignores Ctrl-C, and its children inherit that: tests that send it would wait forever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

EXAMPLES_BY_DAY = 25
"""Hypothesis tries at most this many examples by day; `pytest -m nightly` tries as many as the test says, or 100."""

# No example fails for being slow on a busy machine; in CI all runs try the same examples.
settings.register_profile(
    "tcpwin",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    database=None if "CI" in os.environ else settings.default.database,
    print_blob=True,
)
settings.load_profile("tcpwin")

# Processes started by tests behave as for users: buffered output, modules compiled once.
for variable in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):
    os.environ.pop(variable, None)

# `python -m pytest` puts the checkout first on the path. After an install that is not editable, its folder
# `tcpwin` holds no compiled engine and would hide the installed package.
if not list((ROOT / "tcpwin").glob("_engine*.so")):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT]


@pytest.fixture(autouse=True)
def never_said(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if an analysis made by the test states something impossible about its first connections."""
    from never import violations

    from tcpwin import Analysis

    made: list[weakref.ref[Analysis]] = []
    make = Analysis.__init__

    def noted(self: Analysis, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Analysis, "__init__", noted)
    yield
    for analysis in filter(None, (each() for each in made[:MOST_ANALYSES])):
        # Rules may read the capture again, but it may be gone: check only existing findings.
        assert not violations(analysis, MOST_CONNECTIONS, findings="findings" in vars(analysis))


@pytest.fixture(scope="session")
def reference_captures() -> Path:
    """Return the folder of captures that are not the project's own; skip where it is absent."""
    if not REFERENCE_CAPTURES.is_dir():
        pytest.skip(f"{ABSENT}: set TCPWIN_REFERENCE_CAPTURES to their folder")
    return REFERENCE_CAPTURES


@pytest.fixture
def loopback() -> Iterator[None]:
    """Serialise tests that capture the loopback device or fill it, across processes."""
    with (Path(tempfile.gettempdir()) / f"tcpwin-tests-loopback-{os.getuid()}").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Return the path of a program by its name; skip where it is not installed."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            pytest.skip(f"{name} is not installed")
        return path

    return find


@pytest.fixture
def browser(request: pytest.FixtureRequest, tool: Callable[[str], str]) -> "Browser":
    """Return this process's Chromium, without a window. It is shared by consecutive files that use it."""
    from live import HANG_S
    from playwright.sync_api import sync_playwright

    path, stash = tool("chromium"), request.session.stash
    if BROWSER not in stash:
        arguments = ["--no-sandbox", "--disable-gpu", f"--disable-features={','.join(UNSEEN)}"]
        stack = ExitStack()
        chromium = stack.enter_context(sync_playwright()).chromium
        found = chromium.launch(executable_path=path, args=arguments, timeout=HANG_S * 1000)
        stack.callback(found.close)
        stash[BROWSER] = found, stack
    return stash[BROWSER][0]


def pytest_configure(config: pytest.Config) -> None:
    spread.is_day = config.option.markexpr.strip() == "not nightly"
    spread.is_night = config.option.markexpr.strip() == "nightly"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Bound tests of many cases by day; select them at night."""
    test: Any = getattr(item, "obj", None)
    is_property = is_hypothesis_test(test)
    if spread.is_night and (is_property or hasattr(test, "does_more_at_night")):
        item.add_marker("nightly")
    if spread.is_night or not is_property:
        return
    given = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = settings(given, max_examples=min(given.max_examples, EXAMPLES_BY_DAY))


def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Start files that use a browser first, then those that start services or build wheels (`SLOW`).

    They take longest; started late, one process would work alone at the end.
    """
    places: dict[Path, int] = {}
    for item in items:
        place = min((SLOW.index(each) for each in getattr(item, "fixturenames", ()) if each in SLOW), default=len(SLOW))
        places[item.path] = min(place, places.get(item.path, place))
    items.sort(key=lambda item: places[item.path])
    session.stash[BROWSED] = {path for path, place in places.items() if place == SLOW.index("browser")}


def pytest_collection_finish() -> None:
    """Freeze the collected tests: scanning these thousands of objects takes a fifth of a run's garbage collection."""
    keep_for_good()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Keep imported modules and cached captures of a finished file until the end."""
    yield
    if nextitem is None or nextitem.path != item.path:
        # The browser's event loop runs in this thread, so other files could not run theirs.
        if BROWSER in item.session.stash and (nextitem is None or nextitem.path not in item.session.stash[BROWSED]):
            item.session.stash[BROWSER][1].close()
            del item.session.stash[BROWSER]
        keep_for_good()


def keep_for_good() -> None:
    """Collect garbage, then exclude the remaining objects from later collections."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their length: compressed bytes contain the time of compression, which differs between workers."""
    return f"{len(val)}_bytes" if isinstance(val, bytes) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    return _fail_if_skipped_in_ci(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    return _fail_if_skipped_in_ci(report)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Print how many tests were skipped after the reasons, and what would let them run."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    if not reports:
        return
    reasons = {each.longrepr[2] if isinstance(each.longrepr, tuple) else str(each.longrepr) for each in reports}
    programs = {name for reason in reasons for name in re.findall(r"(\S+) is not installed", reason)}
    needs = [f"apt-get install {' '.join(sorted(PACKAGES.get(name, name) for name in programs))}"] if programs else []
    if any(ABSENT in reason for reason in reasons):
        needs.append("TCPWIN_REFERENCE_CAPTURES=FOLDER, of public captures")
    if any(NO_RIGHT in reason for reason in reasons):
        needs.append("root's rights")
    if any(NO_LAB in reason for reason in reasons):
        needs.append("tcpwin lab build")
    if needs:
        terminalreporter.write_line(f"Skipped: {len(reports):,}. To run more of them: {'; '.join(needs)}.")


def _fail_if_skipped_in_ci(report: Report) -> Report:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(allowed in reason for allowed in (ABSENT, NO_RIGHT, AS_ROOT, KERNEL_LACKS, NO_LAB, OTHER_COMPILER)):
            report.outcome = "failed"
            report.longrepr = f"nothing may be skipped in CI: {reason}"
    return report
