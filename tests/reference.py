"""Captures of the lab's runs and reference captures; reasons for which CI may skip a test."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB_RUNS = ROOT / "captures" / "runs"
REFERENCE_CAPTURES = Path(os.environ.get("TCPWIN_REFERENCE_CAPTURES", ROOT.parent / "shared" / "captures"))
ABSENT = "reference captures are absent"
NO_RIGHT = "the process has no right to"
AS_ROOT = "the process runs as root"
KERNEL_LACKS = "this kernel has no"
NO_LAB = "the lab's kernel is not built"
OTHER_COMPILER = "the budget is that of"
