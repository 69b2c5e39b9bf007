"""Common parts of the pages: rendering with the viewer's rights, a fix's commands, the check of a form's origin."""

from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import service_of
from tcpwin_web.pages.filters import is_runnable


def show(templates: Jinja2Templates, request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page."""
    gate = service_of(request).gate
    common = {"csrf": gate.csrf_token(request), "has_login": gate.is_closed}
    return templates.TemplateResponse(request, name, {**common, **values}, status_code=status)


def settings_of(verdict: Mapping[str, Any], findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the commands of the finding that supplies the verdict's fix, if they run when pasted.

    Args:
        findings: findings of the verdict's connection, with their views.
    """
    key = (verdict["code"], verdict["direction"])
    remedies = (each["view"]["remedy"] for each in findings if (each["code"], each["direction"]) == key)
    return [line for remedy in remedies if remedy for line in remedy["settings"] if is_runnable(line)]


def require_own_form(request: Request, shown: object) -> None:
    """Refuse a form that is not from a page served to this caller.

    Raises:
        HTTPException: 403.
    """
    if not service_of(request).gate.is_own_form(request, shown if isinstance(shown, str) else None):
        raise HTTPException(403, "This form has expired: reload the page.")
