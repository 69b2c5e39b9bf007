"""The lab's kernel: Debian's linux-source built once as a User Mode Linux program.

In: apt (or a source archive), gcc, make. Out: a program in the cache. It needs no root and installs nothing: missing
flex, bison and m4 are downloaded into the build folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tcpwin.errors import TcpwinError
from tcpwin.units import bytes_text, count_text

SERIES = ("6.1", "6.12", "7.3")
"""Linux series available from Debian. 6.12 is the first long-term series whose window follows the ratio measured for
each socket.
"""
DEFAULT_SERIES = SERIES[0]
"""The scenarios' expectations apply to this one."""
RECIPES = Path(__file__).with_name("kernel")
"""One folder per series with `lab.patch` and `config`."""
_SUITES = {"7.3": "trixie-backports"}
"""Debian suites for packages that Debian 12 lacks; apt reads them with separate lists."""
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DOWNLOAD_BYTES = {"6.1": 141_000_000, "6.12": 155_000_000, "7.3": 168_000_000}
BUILD_BYTES = 2_000_000_000
KEPT_BYTES = 9_000_000
BUILD_CPU_S = 460
"""Measured on a busy machine with two cores."""
OBJECTS = 700
"""Number of make's lines that begin with CC or AS, to show progress."""
_PROGRAMS = {"gcc": "gcc", "make": "make", "bc": "bc", "patch": "patch", "xz": "xz-utils", "tar": "tar", "perl": "perl"}
_FETCHED = ("flex", "bison", "m4")
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "tcpwin",
    "KBUILD_BUILD_HOST": "lab",
    "LC_ALL": "C",
}

_PREFIX = "build-"
_NEW_S = 60
"""A younger folder may belong to a build that is about to lock it."""

Say = Callable[[str, float | None], None]
"""Called with the current step and its progress (0 to 1) if known."""


class BuildError(TcpwinError):
    """The kernel cannot be built here."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources that a build needs."""

    download_bytes: int
    disk_bytes: int
    kept_bytes: int
    cpu_s: int
    cores: int
    place: Path

    def __str__(self) -> str:
        download = f"downloads {bytes_text(self.download_bytes)}, " if self.download_bytes else ""
        # The estimate is accurate to a minute at best.
        in_all, each = (round(seconds / 60) for seconds in (self.cpu_s, self.cpu_s / self.cores))
        return (
            f"{download}needs {bytes_text(self.disk_bytes)} of disk in {self.place} while it builds and "
            f"{bytes_text(self.kept_bytes)} afterwards, and about {count_text(in_all, 'minute')} of processor time: "
            f"{each} min on {count_text(self.cores, 'free core')}; no root"
        )


def cache() -> Path:
    """Return tcpwin's cache folder (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "tcpwin"


def recipe_files(series: str) -> tuple[Path, Path]:
    """Return the patch and the configuration of a series."""
    folder = RECIPES / series
    return folder / "lab.patch", folder / "config"


def kernel_path(series: str = DEFAULT_SERIES) -> Path:
    """Return the path of this recipe's kernel; it changes with the patch and the configuration."""
    patch, config = recipe_files(series)
    recipe = hashlib.sha256(patch.read_bytes() + config.read_bytes() + series.encode())
    return cache() / f"linux-{series}-{recipe.hexdigest()[:12]}"


def build_needs(source: Path | None, series: str = DEFAULT_SERIES) -> Needs:
    """Return what `build` will need."""
    cores = len(os.sched_getaffinity(0))
    return Needs(0 if source else _DOWNLOAD_BYTES[series], BUILD_BYTES, KEPT_BYTES, BUILD_CPU_S, cores, cache())


def build(say: Say, source: Path | None = None, series: str = DEFAULT_SERIES) -> Path:
    """Build the kernel of a series and return its program. `source`: linux-source's .deb or a tar of that series."""
    path = kernel_path(series)
    check_host(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_abandoned(path.parent)
    free = shutil.disk_usage(path.parent).free
    if free < BUILD_BYTES:
        raise BuildError(f"{path.parent}: {bytes_text(free)} are free, and a build needs {bytes_text(BUILD_BYTES)}")
    with _working_folder(path.parent) as work:
        tree = _unpack(work, source, series, say)
        patch, config = recipe_files(series)
        # A hunk applied with fuzz may land in another function, without effect.
        command = ["patch", "-p1", "--batch", "--fuzz=0", "-i", str(patch)]
        _run(command, tree, f"the lab's patch for {series} does not fit this source")
        built = _make(work, tree, config, say)
        unfinished = work / "finished"
        shutil.copy2(built, unfinished)
        unfinished.replace(path)
    return path


@contextmanager
def _working_folder(place: Path) -> Iterator[Path]:
    """Yield a private build folder, locked while the build lives: the system releases a dead owner's lock."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as folder:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield Path(folder)
        finally:
            os.close(handle)


def _clear_abandoned(place: Path) -> None:
    """Remove the folders of builds that were killed before cleaning up."""
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            is_new = time.time() - os.fstat(handle).st_mtime < _NEW_S
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not is_new:
                shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(handle)


def check_host(source: Path | None) -> None:
    """Check that a kernel can be built here.

    Raises:
        BuildError: unsupported system, or a program or the source is missing.
    """
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        raise BuildError("the lab's kernel is built on Linux on x86-64 only")
    wanted = dict(_PROGRAMS)
    if source is None or any(shutil.which(tool) is None for tool in _FETCHED):
        wanted |= {"apt-get": "apt", "dpkg-deb": "dpkg"}
    missing = sorted(package for program, package in wanted.items() if shutil.which(program) is None)
    if missing:
        raise BuildError(f"missing here: {', '.join(missing)} (apt install {' '.join(missing)})")
    if source and not source.is_file():
        raise BuildError(f"{source}: no such file")


def _unpack(work: Path, source: Path | None, series: str, say: Say) -> Path:
    """Unpack and return the source tree."""
    if source is None:
        say("download", None)
        package = f"linux-source-{series}"
        suite = _SUITES.get(series)
        reason = f"apt has no {package}, which is in {suite or 'Debian 12'}: a .deb of it, or a tar of Linux {series}"
        reason += ", goes with --source"
        source = _download(work, package, reason, () if suite is None else _suite_options(work, suite, reason))
    say("unpack", None)
    if source.suffix == ".deb":
        _run(["dpkg-deb", "-x", str(source), "package"], work, f"{source} cannot be unpacked")
        found = list(work.glob("package/usr/src/linux-source-*.tar.xz"))
        if len(found) != 1:
            raise BuildError(f"{source}: holds no linux-source-*.tar.xz")
        source = found[0]
    tree = work / "source"
    tree.mkdir()
    _run(["tar", "-xf", str(source.absolute()), "-C", str(tree), "--strip-components=1"], work, f"{source}: no archive")
    shutil.rmtree(work / "package", ignore_errors=True)
    return tree


def _download(work: Path, package: str, reason: str, options: Sequence[str] = ()) -> Path:
    _run(["apt-get", *options, "download", "-q", package], work, reason)
    return next(iter(work.glob(f"{package}_*.deb")))


def _suite_options(work: Path, suite: str, reason: str) -> list[str]:
    """Return options that make apt read another Debian suite from this machine's mirror, with separate lists."""
    fields = "--format=$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    command = ["apt-get", "indextargets", fields, "Created-By: Packages"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    mirrors = [line.rpartition("|")[2] for line in found.stdout.splitlines() if line.startswith("Debian|Debian|")]
    if not mirrors:
        raise BuildError(f"{reason} (apt knows no mirror of Debian here, or `apt-get update` has not run)")
    sources = work / "apt" / "sources.list"
    for folder in ("lists/partial", "archives/partial"):
        (sources.parent / folder).mkdir(parents=True)
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.is_file() else ""
    sources.write_text(f"deb {signed}{mirrors[0]} {suite} main\n", encoding="utf8")
    options = [
        *("-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=-"),
        *("-o", f"Dir::State::Lists={sources.parent / 'lists'}", "-o", f"Dir::Cache={sources.parent}"),
        *("-o", "Acquire::Languages=none"),
    ]
    _run(["apt-get", *options, "update", "-q"], work, reason)
    return options


def _make(work: Path, tree: Path, config: Path, say: Say) -> Path:
    out = work / "out"
    out.mkdir()
    environment = {**os.environ, **_REPRODUCIBLE, **_tools(work)}
    # Ignore the user's settings for signed or verbose builds.
    for name in ("MAKEFLAGS", "CFLAGS", "KCFLAGS", "ARCH", "CROSS_COMPILE"):
        environment.pop(name, None)
    make = ["make", "-C", str(tree), f"O={out}", "ARCH=um"]
    say("configure", None)
    _run([*make, "tinyconfig"], work, "the kernel cannot be configured", environment)
    with (out / ".config").open("a", encoding="ascii") as options:
        options.write(config.read_text(encoding="ascii"))
    _run([*make, "olddefconfig"], work, "the kernel cannot be configured", environment)
    _check_config(out / ".config", config)
    say("compile", 0.0)
    # In this build's private folder, because another build may be running in the same cache.
    own_log = work / "build.log"
    with own_log.open("w", encoding="utf8") as lines:
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        command = [*make, jobs, "linux"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
        )
        assert process.stdout is not None
        done = 0
        try:
            for line in process.stdout:
                lines.write(line)
                if line.startswith(("  CC ", "  AS ")):
                    done += 1
                    say("compile", min(1.0, done / OBJECTS))
        finally:
            if process.poll() is None and sys.exc_info()[0] is not None:
                process.terminate()
            process.wait()
            process.stdout.close()
    if process.returncode:
        log = cache() / "build.log"
        shutil.copyfile(own_log, log)
        raise BuildError(f"the kernel does not compile here: {log} says why")
    return out / "linux"


def _check_config(path: Path, config: Path) -> None:
    """Check now for options that Kconfig dropped; they would cause errors only much later."""
    has = set(path.read_text(encoding="utf8").splitlines())
    wanted = [line for line in config.read_text(encoding="ascii").splitlines() if line.startswith("CONFIG_")]
    dropped = [line for line in wanted if line not in has]
    if dropped:
        raise BuildError(f"this source does not know {', '.join(dropped)}")


def _tools(work: Path) -> dict[str, str]:
    """Return the paths of flex, bison and m4, downloading missing ones."""
    missing = [tool for tool in _FETCHED if shutil.which(tool) is None]
    if not missing:
        return {}
    for tool in missing:
        _run(
            ["dpkg-deb", "-x", str(_download(work, tool, f"apt has no {tool}")), "tools"],
            work,
            f"{tool} cannot be unpacked",
        )
    programs = work / "tools" / "usr"
    path = f"{programs / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    found = {"PATH": path}
    if "bison" in missing:
        found["BISON_PKGDATADIR"] = str(programs / "share" / "bison")
    if "m4" in missing:
        found["M4"] = str(programs / "bin" / "m4")
    return found


def _run(argv: Sequence[str], where: Path, reason: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        argv, cwd=where, env=environment, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"{reason} ({said[-1].strip()[:200] if said else argv[0]})")
