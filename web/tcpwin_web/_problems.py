"""Errors in, problem documents (RFC 9457) out; a browser that asks for a page gets the same facts as a page.

Never carries a traceback or a path of the server.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"

RESPONSES: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "A problem document (RFC 9457)",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail"],
                    "properties": {
                        "type": {"type": "string", "format": "uri-reference"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                        "errors": {"type": "array", "items": {"type": "object"}},
                    },
                }
            }
        },
    }
}


def install(app: FastAPI, templates: Jinja2Templates) -> None:
    """Answer every error of the application with a problem document."""

    def respond(
        request: Request,
        status: int,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **members: Any,
    ) -> Response:
        # RFC 9457 section 4.2.1: with "about:blank" the title is the status code's own phrase.
        problem = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            **members,
        }
        if not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", ""):
            return templates.TemplateResponse(
                request, "problem.html", {"problem": problem}, status_code=status, headers=headers
            )
        return JSONResponse(problem, status, headers, MEDIA_TYPE)

    @app.exception_handler(HTTPException)
    def refuse(request: Request, error: HTTPException) -> Response:
        return respond(request, error.status_code, error.detail, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    def reject(request: Request, error: RequestValidationError) -> Response:
        errors = [{"pointer": "/".join(map(str, each["loc"])), "detail": each["msg"]} for each in error.errors()]
        return respond(request, 422, "The request does not fit the API's description.", errors=errors)

    @app.exception_handler(Exception)
    def fail(request: Request, error: Exception) -> Response:  # noqa: ARG001 (the signature is starlette's)
        return respond(request, 500, "The service failed; its log says why.")
