"""Answer errors as problem documents (RFC 9457), or as pages with the same facts for browsers.

Never reveals a traceback or a path on the server.
"""

import errno
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.templating import Jinja2Templates
from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm.exc import StaleDataError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from tcpwin_web.audit import COMPARED
from tcpwin_web.captures import ConflictError, NotFoundError
from tcpwin_web.headers import HEADERS, NOT_STORED
from tcpwin_web.history import AddressError
from tcpwin_web.jobs import JobError
from tcpwin_web.jobs.executor import SCARCE, NoRoomError
from tcpwin_web.results.queries import QueryError
from tcpwin_web.slots import RETRY_SECONDS, BusyError, GoneError
from tcpwin_web.storage.database import is_full, is_read_only
from tcpwin_web.uploads.stream import UploadError

MEDIA_TYPE = "application/problem+json"
CLOSED = "The service's data folder cannot be written to; nothing was stored. Ask its operator."
DELETED = "The capture has just been deleted."
SHORT = "The service has too few free descriptors or too little memory; try again soon."
GONE = "The client disconnected before the answer."
FULL = "The service's disk is full; nothing was stored. Ask its operator to free space."

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

log = structlog.get_logger("tcpwin.http")


def wants_page(path: str, accept: str) -> bool:
    """Whether a browser asks for a page."""
    return not path.startswith("/api/") and "text/html" in accept


def respond(
    request: Request, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> Response:
    """Build the problem document, or the page, for an error."""
    # RFC 9457 section 4.2.1: with "about:blank" the title is the status code's own phrase.
    problem = {"type": "about:blank", "title": _phrase(status), "status": status, "detail": detail, **members}
    if wants_page(request.url.path, request.headers.get("accept", "")):
        templates: Jinja2Templates = request.app.state.templates
        return templates.TemplateResponse(
            request, "problem.html", {"problem": problem}, status_code=status, headers=headers
        )
    return JSONResponse(problem, status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""

    @app.exception_handler(HTTPException)
    def refuse(request: Request, error: HTTPException) -> Response:
        # If no route matches, starlette only repeats the title.
        is_bare = error.status_code == 404 and error.detail == _phrase(404)
        detail = f"There is nothing at {request.url.path}." if is_bare else error.detail
        return respond(request, error.status_code, detail, headers=error.headers)

    @app.exception_handler(RequestValidationError)
    def reject(request: Request, error: RequestValidationError) -> Response:
        errors = [{"pointer": "/".join(map(str, each["loc"])), "detail": each["msg"]} for each in error.errors()]
        return respond(request, 422, "The request does not match the API's description.", errors=errors)

    @app.exception_handler(NotFoundError)
    def miss(request: Request, error: NotFoundError) -> Response:  # noqa: ARG001 (the signature is starlette's)
        return respond(request, 404, "No capture has this id; /api/v1/captures lists them.")

    @app.exception_handler(ConflictError)
    def conflict(request: Request, error: ConflictError) -> Response:
        return respond(request, 409, _sentence(error))

    @app.exception_handler(UploadError)
    def turn_away(request: Request, error: UploadError) -> Response:
        return respond(request, error.status, _sentence(error))

    @app.exception_handler(AddressError)
    @app.exception_handler(QueryError)
    def doubt(request: Request, error: Exception) -> Response:
        return respond(request, 422, _sentence(error))

    @app.exception_handler(BusyError)
    def put_off(request: Request, error: BusyError) -> Response:
        return respond(request, 503, _sentence(error), headers={"Retry-After": str(RETRY_SECONDS)})

    @app.exception_handler(GoneError)
    @app.exception_handler(ClientDisconnect)
    def drop(request: Request, error: Exception) -> Response:  # noqa: ARG001 (the signature is starlette's)
        # Nobody reads this answer; the log and the counters record it.
        return respond(request, 499, GONE)

    @app.exception_handler(NoRoomError)
    def lack_room(request: Request, error: NoRoomError) -> Response:
        return respond(request, 507, _sentence(error))

    @app.exception_handler(JobError)
    async def give_up(request: Request, error: JobError) -> Response:
        # A worker cannot know why files are missing.
        for name in ("capture_id", *COMPARED):
            capture_id = request.path_params.get(name) or request.query_params.get(name)
            if capture_id and not await request.app.state.service.captures.exists(capture_id):
                return respond(request, 404, DELETED)
        return respond(request, 422, _sentence(error))

    @app.exception_handler(OSError)
    def run_out(request: Request, error: OSError) -> Response:
        if is_full(error):
            return respond(request, 507, FULL)
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return respond(request, 503, CLOSED)
        if error.errno in SCARCE:
            log.warning("the system has run out", reason=error.strerror)
            return respond(request, 503, SHORT, headers={"Retry-After": str(RETRY_SECONDS)})
        raise error

    @app.exception_handler(IntegrityError)
    @app.exception_handler(StaleDataError)
    def collide(request: Request, error: Exception) -> Response:
        log.info("two requests met", error=type(error).__name__)
        return respond(request, 409, "Another request changed or deleted it at the same time; try again.")

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    @app.exception_handler(PoolTimeoutError)
    def database_failed(request: Request, error: SQLAlchemyError) -> Response:
        if is_full(error) or is_read_only(error):
            log.error("the database failed", error=str(error))
            return respond(request, 507, FULL) if is_full(error) else respond(request, 503, CLOSED)
        request.app.state.service.database.note_failure(error)
        return respond(request, 503, "The service's database does not respond.")

    @app.exception_handler(Exception)
    def fail(request: Request, error: Exception) -> Response:
        log.error("a request failed", path=request.url.path, exc_info=error)
        # Answered outside the middleware that adds these headers; the connection is closed.
        headers = {**HEADERS, "Cache-Control": NOT_STORED, "Connection": "close"}
        return respond(request, 500, "Internal error; see the service's log.", headers=headers)

    @app.exception_handler(FileNotFoundError)
    def deleted(request: Request, error: Exception) -> Response:
        log.warning("results were deleted while they were read", path=request.url.path, error=str(error))
        return respond(request, 404, DELETED)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Client Closed Request" if status == 499 else "Error"


def _sentence(error: Exception) -> str:
    text = str(error)
    text = text[:1].upper() + text[1:] if isinstance(error, BusyError) else text
    return text if text.endswith((".", "!", "?")) else f"{text}."
