"""The two distributions, their versions, the README's commands and the rules of CI."""

import hashlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sys.executable).parent
ENVIRONMENT = {
    **os.environ,
    "MATURIN_NO_INSTALL_RUST": "1",
    "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
}


LOCKED = ROOT / ".ci" / "locked"


@pytest.mark.parametrize("name", ["build.txt", "checks.txt", "container.txt"])
def test_locked_requirements_have_hashes(name: str) -> None:
    """`pip --require-hashes` needs one version per requirement and the hashes of its files."""
    lines = (LOCKED / name).read_text(encoding="utf8").replace("\\\n", " ").splitlines()
    assert lines
    for line in lines:
        assert re.fullmatch(
            r"[\w.-]+(\[[\w,-]+\])?==[\w.!+]+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+", line.rstrip()
        ), line


def test_the_lock_matches_the_requirements() -> None:
    """Fails if `just lock` was not run after a requirement changed."""
    lock = runpy.run_path(str(ROOT / ".ci" / "lock"))
    for name, needs in lock["lists"]().items():
        found = re.findall(
            r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", (LOCKED / name).read_text(encoding="utf8"), re.MULTILINE
        )
        versions = {canonicalize_name(package): version for package, version in found}
        for need in map(Requirement, needs):
            assert need.specifier.contains(versions[canonicalize_name(need.name)]), f"{name}: {need}"


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**ENVIRONMENT, **variables}, text=True, capture_output=True, check=False
    )


def build(folder: Path, out: Path, *command: str) -> Path:
    done = run(sys.executable, "-m", *command, str(out), cwd=folder)
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel with the profile of editable installs, whose engine is already compiled."""
    built = build(ROOT, tmp_path_factory.mktemp("wheel"), "maturin", "build", "--profile", "editable", "--out")
    assert "-cp311-abi3-" in built.name
    return built


@pytest.fixture(scope="module")
def wheel(built_wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(built_wheel).namelist())


def boms(built: Path) -> dict[str, dict[str, Any]]:
    """Return the bills of materials of a wheel by their subject (PEP 770)."""
    with zipfile.ZipFile(built) as archive:
        found = [name for name in archive.namelist() if re.match(r"[^/]+\.dist-info/sboms/", name)]
        told = [json.loads(archive.read(name)) for name in found]
    assert all(each["bomFormat"] == "CycloneDX" for each in told)
    return {each["metadata"]["component"]["name"]: each for each in told}


def purls(bom: dict[str, Any], scope: str | None = None) -> set[str]:
    return {each["purl"] for each in bom["components"] if scope is None or each["scope"] == scope}


def test_wheel_names_its_compiled_and_bundled_parts(built_wheel: Path) -> None:
    told = boms(built_wheel)
    assert set(told) == {"tcpwin-engine", "tcpwin"}
    engine = ROOT / "tcpwin" / "engine"
    tree = run("cargo", "tree", "--locked", "-e", "normal", "--prefix", "none", "--format", "{p}", cwd=engine)
    assert tree.returncode == 0, tree.stderr
    linked = {tuple(line.split()[:2]) for line in tree.stdout.splitlines()} - {("tcpwin-engine", "v0.1.0")}
    assert len(linked) > 30
    assert {f"pkg:cargo/{name}@{version[1:]}" for name, version in linked} <= purls(told["tcpwin-engine"], "required")
    locked = tomllib.loads((engine / "Cargo.lock").read_text(encoding="utf8"))["package"]
    assert purls(told["tcpwin-engine"]) <= {f"pkg:cargo/{each['name']}@{each['version']}" for each in locked}
    vendored = tomllib.loads((ROOT / "tcpwin/figures/assets/plotly-basic.toml").read_text(encoding="utf8"))
    (plotly,) = told["tcpwin"]["components"]
    assert plotly["purl"] == f"pkg:npm/{vendored['package']}@{vendored['version']}"
    (file,) = plotly["components"]
    with zipfile.ZipFile(built_wheel) as archive:
        content = hashlib.sha256(archive.read(file["name"])).hexdigest()
    assert file["hashes"] == [{"alg": "SHA-256", "content": content}]


HOOK = "import build_backend; print(build_backend.get_requires_for_build_editable())"
BUILDS = ROOT / "tcpwin" / "engine"


@pytest.mark.parametrize(
    ("cargo", "compiler", "said"),
    [
        (None, True, "Building tcpwin needs Rust 1.85 or newer: https://rustup.rs."),
        ("echo cargo 1.63.0", True, "Building tcpwin needs Rust 1.85 or newer instead of 1.63: "),
        ("exit 1", True, "Building tcpwin needs Rust 1.85 or newer: https://rustup.rs."),
        ("echo cargo 1.100.0", False, "Building tcpwin needs a C compiler (cc): "),
        ("echo cargo 1.85.0", True, ""),
    ],
)
def test_a_build_without_its_tools_stops_with_one_sentence(
    cargo: str | None, compiler: bool, said: str, tmp_path: Path
) -> None:
    for name, script in (("cargo", cargo), ("cc", "true" if compiler else None)):
        if script is not None:
            (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / name).chmod(0o700)
    done = run(sys.executable, "-c", HOOK, cwd=BUILDS, PATH=str(tmp_path))
    assert (done.returncode == 0, done.stderr.count("\n")) == (not said, 1 if said else 0), done.stderr
    assert done.stderr.startswith(said)
    assert ("maturin" in done.stdout) == (not said)


def test_the_back_end_has_maturins_hooks() -> None:
    import maturin

    hooks = runpy.run_path(str(BUILDS / "build_backend.py"))
    names = {name for name in dir(maturin) if re.match(r"(get_requires_for_|prepare_metadata_for_)?build_", name)}
    assert {name for name in hooks if name in names} == names - {"build_info"}


def test_sources_without_an_engine_say_so(tmp_path: Path) -> None:
    """A wheel's user who starts Python in a checkout: the folder's sources hide the installed package."""
    for name in ("__init__.py", "__init__.pyi", "lazy.py", "_engine.py"):
        (tmp_path / "tcpwin").mkdir(exist_ok=True)
        (tmp_path / "tcpwin" / name).write_bytes((ROOT / "tcpwin" / name).read_bytes())
    shutil.copytree(ROOT / "tcpwin" / "limits", tmp_path / "tcpwin" / "limits")
    done = run(sys.executable, "-c", "import tcpwin; tcpwin.analyze", cwd=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {tmp_path}/tcpwin has tcpwin's sources, but no compiled engine."), done.stderr
    done = run(SCRIPTS / "tcpwin", "doctor", "import", cwd=tmp_path)
    assert done.returncode == 1
    assert "finds sources without a compiled engine: cd elsewhere, or pip install -e ." in done.stdout
    assert run(SCRIPTS / "tcpwin", "doctor", "import", cwd=ROOT).returncode == 0


def top_levels(names: set[str]) -> set[str]:
    return {re.sub(r"-.*\.dist-info$", ".dist-info", name.split("/")[0]) for name in names}


def test_wheel_holds_the_package_and_nothing_else(wheel: set[str]) -> None:
    assert top_levels(wheel) == {"tcpwin", "tcpwin.dist-info"}


def test_wheel_is_typed_and_compiled(wheel: set[str]) -> None:
    assert {"tcpwin/py.typed", "tcpwin/_engine.pyi", "tcpwin/_engine.abi3.so"} <= wheel


def test_wheel_holds_the_labs_scenarios_and_its_kernels_recipe(wheel: set[str]) -> None:
    lab = ROOT / "tcpwin" / "lab"
    files = [*lab.glob("scenarios/*.toml"), *(path for path in (lab / "kernel").rglob("*") if path.is_file())]
    assert len(files) > 50
    assert {str(path.relative_to(ROOT)) for path in files} <= wheel


def test_wheel_holds_every_python_file_and_no_rust(wheel: set[str]) -> None:
    package = ROOT / "tcpwin"
    sources = {str(path.relative_to(ROOT)) for path in package.rglob("*.py") if package / "engine" not in path.parents}
    assert "tcpwin/__init__.py" in sources
    assert sources <= wheel
    assert not [name for name in wheel if "engine/" in name or name.endswith((".rs", ".lock"))]


VENDORED = {f"tcpwin/figures/assets/plotly-basic.{ending}" for ending in ("LICENSE", "cdx.json", "min.js", "toml")}


def test_wheel_contains_the_files_of_reports(wheel: set[str]) -> None:
    page = {f"tcpwin/render/report/page/report.{ending}" for ending in ("css", "html.j2", "js")}
    assert page | VENDORED <= wheel


def test_wheel_holds_the_published_references_and_the_labs_scenarios_and_no_other_toml(wheel: set[str]) -> None:
    folders = [
        ROOT / "tcpwin" / name for name in ("reference/articles", "reference/data", "lab/scenarios", "limits/defects")
    ]
    data = {str(path.relative_to(ROOT)) for folder in folders for path in folder.glob("*.toml")}
    assert {"tcpwin/reference/articles/passt.toml", "tcpwin/reference/data/passt-ramps.toml"} <= data
    assert {name for name in wheel if name.endswith(".toml")} - VENDORED == data


def test_sdist_can_be_built_from(tmp_path: Path) -> None:
    with tarfile.open(build(ROOT, tmp_path, "maturin", "sdist", "--out")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "LICENSE",
        "README.md",
        "pyproject.toml",
        "tcpwin/engine/Cargo.lock",
        "tcpwin/engine/Cargo.toml",
        "tcpwin/engine/src/lib.rs",
        "tcpwin/py.typed",
    } <= names
    assert not [name for name in names if "/target/" in name or name.endswith(".so")]


def test_web_wheel_holds_its_package_with_templates_and_assets(tmp_path: Path) -> None:
    built = build(ROOT / "web", tmp_path, "hatchling", "build", "-t", "wheel", "-d")
    names = set(zipfile.ZipFile(built).namelist())
    told = boms(built)["tcpwin-web"]
    assert told["metadata"]["component"]["version"] == version("tcpwin-web")
    # Compare versions of packages that also run in the container.
    pinned = re.findall(
        r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", (LOCKED / "container.txt").read_text("utf8"), re.MULTILINE
    )
    assert purls(told) == {f"pkg:pypi/{canonicalize_name(name)}@{version}" for name, version in pinned}
    assert top_levels(names) == {"tcpwin_web", "tcpwin_web.dist-info"}
    with zipfile.ZipFile(built) as archive:
        (licence,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    package = ROOT / "web" / "tcpwin_web"
    shipped = {path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert package / "templates" / "base.html" in shipped
    assert {str(path.relative_to(ROOT / "web")) for path in shipped} <= names


@pytest.mark.parametrize("module", ["tcpwin", "tcpwin.cli", "tcpwin_web", "tcpwin_web.server"])
def test_modules_import_outside_the_checkout(module: str, tmp_path: Path) -> None:
    done = run(sys.executable, "-W", "error", "-c", f"import {module}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_importing_tcpwin_loads_no_heavy_package(tmp_path: Path) -> None:
    heavy = {"dpkt", "plotly", "polars", "pyarrow", "scapy", "tcpwin_web"}
    done = run(sys.executable, "-c", "import sys, tcpwin; print(*sys.modules)", cwd=tmp_path)
    assert "tcpwin" in done.stdout.split(), done.stderr
    assert not heavy & set(done.stdout.split())


def test_importing_tcpwin_loads_little_of_the_standard_library(tmp_path: Path) -> None:
    """Importing typing alone takes as long as starting the interpreter."""
    code = "import sys; before = set(sys.modules); import tcpwin; print(*set(sys.modules) - before)"
    done = run(sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}; {code}", cwd=tmp_path)
    assert set(done.stdout.split()) == {"tcpwin", "tcpwin.lazy", "__future__"}, done.stderr


def loaded_by(*arguments: object, cwd: Path) -> set[str]:
    """Return the modules that a command leaves loaded."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    done = run(sys.executable, "-c", code + "from tcpwin.cli import main; main()", *map(str, arguments), cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_the_version_loads_no_command_line(tmp_path: Path) -> None:
    for option in ("--version", "-V"):
        loaded = loaded_by(option, cwd=tmp_path)
        assert {name for name in loaded if name.startswith("tcpwin")} == {
            "tcpwin",
            "tcpwin.cli",
            "tcpwin.lazy",
            "tcpwin.version",
        }
        assert not loaded & {"click", "importlib.metadata", "pathlib", "typing"}


def test_a_small_capture_loads_no_more_than_its_answer_needs(tmp_path: Path) -> None:
    """No connection of this capture has a problem, so no rule is judged."""
    loaded = loaded_by("analyze", ROOT / "captures" / "wild" / "http-download.pcapng", cwd=tmp_path)
    assert "tcpwin.render.text.analysis" in loaded
    assert not loaded & {"importlib.metadata", "numpy", "rich", "shutil", "tempfile"}
    unused = ("tcpwin.figures", "tcpwin.hosts.", "tcpwin.limits.rules.", "tcpwin.render.kernel", "tcpwin.render.report")
    assert [name for name in sorted(loaded) if name.startswith(unused)] == ["tcpwin.hosts.bundle_capture"]


@pytest.mark.parametrize("command", ["tcpwin", "tcpwin-web"])
def test_command_prints_the_version_of_its_distribution(command: str, tmp_path: Path) -> None:
    done = run(SCRIPTS / command, "--version", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == version(command)


def test_one_version_everywhere() -> None:
    def declared(path: str, table: str) -> str:
        return tomllib.loads((ROOT / path).read_text())[table]["version"]

    versions = {
        declared("pyproject.toml", "project"),
        declared("web/pyproject.toml", "project"),
        declared("tcpwin/engine/Cargo.toml", "package"),
        version("tcpwin"),
        version("tcpwin-web"),
    }
    assert len(versions) == 1


def test_changelog_begins_with_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version("tcpwin")


def readme_commands() -> list[str]:
    return [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("python3 -m venv")]


def test_readme_has_one_command_that_analyses_and_serves_and_one_that_tests() -> None:
    first, second = readme_commands()
    assert "&& .venv/bin/tcpwin analyze captures/" in first
    assert first.endswith("&& .venv/bin/tcpwin serve --open")
    assert second.endswith("&& .venv/bin/pytest")


def test_readme_commands_install_what_exists() -> None:
    extras = {
        folder: tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for folder in (".", "./web")
    }
    for command in readme_commands():
        assert "MATURIN_NO_INSTALL_RUST=1 .venv/bin/pip install" in command
        words = shlex.split(command)
        captures = [word for word in words if word.startswith("captures/")]
        assert all((ROOT / capture).is_file() for capture in captures), captures
        installed = [re.fullmatch(r"(\.|\./web)(?:\[(\w+)\])?", word) for word in words]
        found = [(match[1], match[2]) for match in installed if match]
        assert [folder for folder, _ in found] == [".", "./web"]
        assert all(extra is None or extra in extras[folder] for folder, extra in found)


@pytest.mark.parametrize(("ci", "failures"), [("true", 2), ("", 0)])
def test_a_skip_fails_in_ci(tmp_path: Path, ci: str, failures: int) -> None:
    """Except if reference captures are absent; applies to tests and modules."""
    for name in ("conftest.py", "never.py", "reference.py", "spread.py"):
        (tmp_path / name).write_text((ROOT / "tests" / name).read_text())
    for place, reason in enumerate(("tshark is not installed", "reference captures are absent: none")):
        skip = f"pytest.skip({reason!r}, allow_module_level=True)"
        for level, body in (("test", f"def test_it(): {skip}"), ("module", skip)):
            (tmp_path / f"test_{level}_{place}.py").write_text(f"import pytest\n{body}\n")
    done = run(
        sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", cwd=tmp_path, CI=ci
    )
    counts = {kind.rstrip("s"): int(count) for count, kind in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    assert (failed, counts["skipped"]) == (failures, 4 - failures), done.stdout
