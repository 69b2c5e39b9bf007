"""Captures that are not the project's own: where they lie, and the reasons for which a test may be skipped in CI."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE_CAPTURES = Path(os.environ.get("TCPWIN_REFERENCE_CAPTURES", ROOT.parent / "shared" / "captures"))
ABSENT = "reference captures are absent"
NO_RIGHT = "the process has no right to"
AS_ROOT = "the process runs as root"
KERNEL_LACKS = "this kernel has no"
