"""The list of rules, and the page of each."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response
from fastapi.templating import Jinja2Templates

from tcpwin.limits import all_rules, describe_page
from tcpwin_web.pages.parts import show


def routes(templates: Jinja2Templates) -> APIRouter:
    """Create the routes."""
    router = APIRouter()

    @router.get("/rules")
    def show_rules(request: Request) -> Response:
        return show(templates, request, "rules.html", rules=list(all_rules().values()))

    @router.get("/rules/{code}")
    def show_rule(request: Request, code: str) -> Response:
        rule = all_rules().get(code.upper())
        if rule is None:
            raise HTTPException(404, "No rule has this code.")
        sections = describe_page(rule)["sections"]
        return show(templates, request, "rule.html", rule=rule, sections=sections)

    return router
