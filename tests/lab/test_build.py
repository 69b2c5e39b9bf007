"""The kernel's build, as far as it can be tested without building one."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
from pathlib import Path

import pytest
from cli.command import refused, tcpwin

from tcpwin.cli import lab as lab_commands
from tcpwin.lab import kernel_build as recipe
from tcpwin.lab import kernel_path

HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")


@pytest.mark.parametrize("series", recipe.SERIES)
def test_the_patch_is_whole(series: str) -> None:
    """Each hunk has as many lines as its head states, which hand-edited patches often violate."""
    files = 0
    old = new = 0
    patch, _ = recipe.recipe_files(series)
    for line in patch.read_text(encoding="utf8").splitlines():
        if old == new == 0:
            files += line.startswith("+++ b/")
            found = HUNK.fullmatch(line)
            assert found or line.startswith(("--- a/", "+++ b/")), line
            old, new = (int(found[1] or 1), int(found[2] or 1)) if found else (0, 0)
        else:
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
    assert (old, new) == (0, 0)
    # From 7.3 on User Mode Linux asks the host for the size of its floating-point registers.
    assert files == (7 if series == "7.3" else 8)


def test_every_series_adds_the_same_lines() -> None:
    """Only a line's place, its indentation and `const` may differ between kernels."""
    added = [
        sorted(
            line[1:].strip().replace("const struct sk_buff", "struct sk_buff")
            for line in _without_registers(recipe.recipe_files(series)[0].read_text("utf8")).splitlines()
            if line[:1] == "+"
        )
        for series in recipe.SERIES
    ]
    assert all(lines == added[0] for lines in added)
    for name in ("tcp_collapse_max_bytes", "lab_read_ps_per_byte", "rx_truesize", "lab_seed", "tcp_lab"):
        assert any(name in line for line in added[0])


def _without_registers(patch: str) -> str:
    """Return a patch without its part for the size of the host's floating-point registers, which 7.3 does not need."""
    return re.sub(r"--- a/arch/x86/um/user-offsets\.c\n.*?(?=--- a/)", "", patch, flags=re.DOTALL)


def test_options_name_every_series() -> None:
    assert lab_commands.SERIES == recipe.SERIES


@pytest.mark.parametrize("series", recipe.SERIES)
def test_no_option_is_said_twice(series: str) -> None:
    lines = recipe.recipe_files(series)[1].read_text(encoding="ascii").splitlines()
    names = [re.sub(r"^# |[= ].*", "", line) for line in lines if "CONFIG_" in line]
    assert len(names) == len(set(names))


def test_another_recipe_is_another_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = kernel_path()
    assert first.parent == tmp_path / "tcpwin"
    assert kernel_path("6.12").name.startswith("linux-6.12-")
    for name in ("lab.patch", "config"):
        other = tmp_path / "6.1" / name
        other.parent.mkdir(exist_ok=True)
        other.write_bytes(recipe.recipe_files("6.1")[0].with_name(name).read_bytes())
    (tmp_path / "6.1" / "config").write_text("CONFIG_NET=y\n")
    monkeypatch.setattr(recipe, "RECIPES", tmp_path)
    assert kernel_path() != first


@pytest.mark.parametrize("series", recipe.SERIES)
def test_what_it_needs_is_said_first(series: str, tmp_path: Path) -> None:
    said = tcpwin(
        "lab", "build", "--kernel", series, "--needs", env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    ).stdout
    assert re.match(rb"downloads 1\d\d MB, needs 2(\.\d+)? GB of disk in .* and about \d+ minutes of processor", said)
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_the_error_says_what_to_install(tmp_path: Path) -> None:
    said = refused("lab", "build", env={"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path)})
    assert "missing here: " in said
    assert "gcc" in said


APT = """#!/bin/sh
echo "$@" >> "$ASKED"
case $* in
indextargets*) printf 'Debian|Debian-Security|http://mirror.test/security/\\nDebian|Debian|http://mirror.test/debian/\\n';;
*) for word; do case $word in Dir::Etc::SourceList=*) cat "${word#*=}" >> "$ASKED";; esac; done;;
esac
"""
"""apt-get of a machine whose mirror is mirror.test; it records its arguments and sources."""


@pytest.mark.parametrize("knows_debian", [True, False])
def test_a_series_of_a_newer_debian_comes_from_this_machines_mirror(
    knows_debian: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt's lists belong to root, whose installations must not come from a newer suite by accident."""
    work, apt = tmp_path / "work", tmp_path / "bin" / "apt-get"
    for folder in (work, apt.parent):
        folder.mkdir()
    apt.write_text(APT if knows_debian else APT.replace("Debian|Debian|", "Ubuntu|Ubuntu|"))
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{apt.parent}:/usr/bin:/bin")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    if not knows_debian:
        with pytest.raises(recipe.BuildError, match=r"^why \(apt knows no mirror of Debian here"):
            recipe._suite_options(work, "trixie-backports", "why")
        return
    options = recipe._suite_options(work, "trixie-backports", "why")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[-1].endswith("http://mirror.test/debian/ trixie-backports main")
    assert asked[-2].endswith("update -q")
    folders = [option.partition("=")[2] for option in options if option.startswith("Dir::")]
    assert all(folder == "-" or Path(folder).is_relative_to(work) for folder in folders)
    assert len(folders) == 4


@pytest.mark.skipif(
    any(subprocess.run(["which", tool], capture_output=True, check=False).returncode for tool in ("gcc", "make", "bc")),
    reason="a compiler must be there for the source to be looked at",
)
def test_a_file_without_a_source_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "linux.tar.xz"
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    assert "no such file" in refused("lab", "build", "--source", source, env=environment)
    source.write_bytes(b"nothing")
    assert "no archive" in refused("lab", "build", "--source", source, env=environment)
    assert list((tmp_path / "cache" / "tcpwin").iterdir()) == []


def test_a_run_without_a_kernel_says_what_to_do(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    said = refused("lab", "run", "zero-window-5s", "-o", tmp_path, env=environment)
    assert "`tcpwin lab build` does it once" in said
    said = refused("lab", "run", "zero-window-5s", "--kernel", "6.12", "-o", tmp_path, env=environment)
    assert "the lab's kernel 6.12 is not built yet: `tcpwin lab build --kernel 6.12` does it once" in said


def test_this_hosts_kernel_is_not_another(tmp_path: Path) -> None:
    """Namespaces of this host use its kernel, so a bundle must not claim 6.12."""
    said = refused("lab", "run", "zero-window-5s", "--kernel", "6.12", "--engine", "netns", "-o", tmp_path, status=2)
    assert "6.12 goes with --engine uml" in said


MAKE = """#!/bin/sh
for word; do case $word in O=*) out=${word#O=};; esac; done
case $word in
tinyconfig) : > "$out/.config";;
linux) rm -f "$XDG_CACHE_HOME"/tcpwin/*.log; echo "  CC  one"; echo "no rule to make two"; : > "$out/linux"; exit ENDS;;
esac
"""
"""A make that simulates another build ending in the same cache."""


@pytest.mark.parametrize("ends", [0, 2])
def test_a_build_that_ends_deletes_no_file_of_another(
    ends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, work = tmp_path / "tcpwin", tmp_path / "work"
    for folder in (cache, work, tmp_path / "bin"):
        folder.mkdir()
    make = tmp_path / "bin" / "make"
    make.write_text(MAKE.replace("ENDS", str(ends)))
    make.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{make.parent}:/usr/bin:/bin")
    monkeypatch.setattr(recipe, "_tools", lambda _: {})
    if ends:
        with pytest.raises(recipe.BuildError, match=r"build\.log says why"):
            recipe._make(work, work, recipe.recipe_files("6.1")[1], lambda *_: None)
        assert "no rule to make two" in (cache / "build.log").read_text()
    else:
        assert recipe._make(work, work, recipe.recipe_files("6.1")[1], lambda *_: None).is_file()
        assert list(cache.iterdir()) == []


def test_what_killed_builds_left_is_removed_and_a_living_one_kept(tmp_path: Path) -> None:
    """kill -9 leaves a folder of up to 2 GB; the system releases its lock."""
    place = tmp_path / "tcpwin"
    dead, alive, young = (place / f"build-{name}" for name in ("dead", "alive", "young"))
    for folder in (dead, alive, young):
        (folder / "source").mkdir(parents=True)
    for folder in (dead, alive):
        os.utime(folder, (1, 1))
    handle = os.open(alive, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        recipe._clear_abandoned(place)
    finally:
        os.close(handle)
    assert sorted(place.iterdir()) == [alive, young]
