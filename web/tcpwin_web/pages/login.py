"""Login and logout: the token in, a signed cookie out."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.templating import Jinja2Templates

from tcpwin_web.api.parts import ServiceOf
from tcpwin_web.pages.parts import require_own_form, show
from tcpwin_web.security.access import COOKIE


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/login")
    def show_login(request: Request, service: ServiceOf, next: str = "/") -> Response:
        if not service.gate.is_closed:
            return RedirectResponse("/", 303)
        return show(templates, request, "login.html", next=_here(next), is_wrong=False)

    @router.post("/login")
    async def log_in(
        request: Request,
        service: ServiceOf,
        token: Annotated[str, Form(max_length=1000)],
        next: Annotated[str, Form(max_length=2000)] = "/",
    ) -> Response:
        service.rates.take("login", request)
        opened = service.gate.open_login(token)
        if opened is None:
            await service.audit.note(request, "login.refused")
            return show(templates, request, "login.html", status=403, next=_here(next), is_wrong=True)
        await service.audit.note(request, "login", opened.token)
        answer = RedirectResponse(_here(next), 303)
        answer.set_cookie(
            COOKIE,
            opened.session,
            max_age=int(service.settings.session_hours * 3600),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @router.post("/logout")
    async def log_out(request: Request, service: ServiceOf, csrf: Annotated[str, Form(max_length=200)]) -> Response:
        require_own_form(request, csrf)
        service.gate.end_session(request)
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    return router


def _here(path: str) -> str:
    """Return the path if it is a page of this service, otherwise `/`: `//host` and `/\\host` lead elsewhere."""
    is_here = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_here else "/"
