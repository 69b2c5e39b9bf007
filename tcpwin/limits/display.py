"""Show the answer in notebooks and the interpreter, as one sentence or as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpwin.errors import TcpwinError

if TYPE_CHECKING:
    from tcpwin.limits.analysis import Analysis
    from tcpwin.limits.connection import Connection
    from tcpwin.limits.verdict import Verdict


def answered(description: str, judged: Analysis | Connection) -> str:
    """Add the answer to a description in angle brackets."""
    verdict = _verdict(judged)
    return description if verdict is None else f"{description[:-1]}. {verdict.text}>"


def answer_html(judged: Analysis | Connection) -> str:
    """Return the answer as HTML; empty without one."""
    verdict = _verdict(judged)
    return "" if verdict is None else verdict_html(verdict)


def verdict_html(verdict: Verdict) -> str:
    """Return a verdict as HTML: the answer, then fix, cost, time and evidence."""
    from html import escape

    frames = ", ".join(map(str, verdict.frames))
    facts = {"Fix": verdict.fix, "Cost": verdict.cost_text, "When": verdict.when_text}
    facts |= {"Evidence": verdict.reason, "Frames": frames}
    rows = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in facts.items() if text)
    return f"<p><strong>{escape(verdict.text)}</strong></p><table>{rows}</table>"


def _verdict(judged: Analysis | Connection) -> Verdict | None:
    """Return the verdict; None without connections, and if the capture that it needs cannot be read again."""
    try:
        return judged.verdict
    except TcpwinError:
        return None
