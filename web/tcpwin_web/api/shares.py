"""Share links, and what guests see through them."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from pydantic import BaseModel, Field

from tcpwin_web.api.parts import CaptureId, RowId, ServiceOf, as_json
from tcpwin_web.api.strict import Body
from tcpwin_web.results import layout, queries
from tcpwin_web.service import Service
from tcpwin_web.sharing.links import Opened
from tcpwin_web.storage.models import Share

router = APIRouter(tags=["sharing"])

SHOWN_FINDINGS = 100
SHOWN_CONNECTIONS = 200
SHARED_SECONDS = 60.0
"""Wait of a guest for a slot."""
GONE = "This link has been revoked, has expired, or never existed."
Secret = Annotated[str, Path(max_length=128)]


class NewShare(Body):
    """Settings of a new link."""

    days: Annotated[float, Field(gt=0, le=3650, examples=[7])] = 7
    anonymise: Annotated[bool, Field(description="map addresses, preserving shared prefixes")] = True


class ShareEntry(BaseModel):
    """A link, without its secret."""

    id: str
    created_ns: int
    expires_ns: int
    anonymise: bool

    @classmethod
    def of(cls, share: Share) -> "ShareEntry":
        """Describe a row."""
        return cls(
            id=share.id,
            created_ns=share.created_ns,
            expires_ns=share.expires_ns,
            anonymise=share.is_anonymised,
        )


class MadeShare(ShareEntry):
    """A new link; its path is shown only once."""

    path: str


class ShareList(BaseModel):
    """The links of a capture."""

    shares: list[ShareEntry]


@router.post("/captures/{capture_id}/shares", status_code=201)
async def create_share(service: ServiceOf, request: Request, capture_id: CaptureId, new: NewShare) -> MadeShare:
    """Create a link that lets anyone who has it read this capture's results."""
    if new.days > service.settings.share_days:
        raise HTTPException(422, f"A link can be valid for at most {service.settings.share_days:g} days.")
    share, secret = await service.links.create(capture_id, days=new.days, anonymise=new.anonymise)
    await service.audit.note(request, "share.create", capture_id, link=share.id)
    return MadeShare(**ShareEntry.of(share).model_dump(), path=f"/shared/{secret}")


@router.get("/captures/{capture_id}/shares")
async def list_shares(service: ServiceOf, capture_id: CaptureId) -> ShareList:
    """List the unexpired links of a capture."""
    return ShareList(shares=[ShareEntry.of(each) for each in await service.links.list(capture_id)])


@router.delete("/shares/{share_id}", status_code=204)
async def revoke_share(service: ServiceOf, request: Request, share_id: RowId) -> Response:
    """End a link."""
    # A full disk must not keep a link open.
    if not await service.data.reserve.spend(lambda: service.links.revoke(share_id)):
        raise HTTPException(404, "No link has this id.")
    await service.audit.note(request, "share.revoke", link=share_id)
    return Response(status_code=204)


@router.get("/shared/{secret}")
async def show_shared(service: ServiceOf, request: Request, secret: Secret) -> Response:
    """Return the summary, the costliest findings and the worst connections. Needs no token."""
    return as_json(await read_shared(service, await open_link(service, request, secret)))


async def open_link(service: Service, request: Request, secret: str) -> Opened:
    """Return a link's capture, or answer 404; counted, so that nobody can try many secrets."""
    service.rates.take("guest", request)
    opened = await service.links.open(secret)
    if opened is None:
        raise HTTPException(404, GONE)
    service.audit.seen(request, "share.open", opened.capture.id, link=opened.link_id)
    return opened


async def read_shared(service: Service, opened: Opened) -> dict[str, Any]:
    """Return a link's document, with mapped addresses if the link hides them."""
    async with service.shared_pages.take(SHARED_SECONDS):
        return await _read_shared(service, opened)


async def _read_shared(service: Service, opened: Opened) -> dict[str, Any]:
    mapping = opened.anonymise
    folder = service.data.results(opened.capture.id)
    if mapping is not None:
        folder = await service.queue.shared(opened.capture.id)
    document = await asyncio.to_thread(queries.read_document, folder, layout.CAPTURE)
    view = await asyncio.to_thread(queries.read_document, folder, layout.VIEW)
    sketches = await asyncio.to_thread(queries.read_sketches, service.data.results(opened.capture.id))
    findings, _ = await asyncio.to_thread(queries.list_findings, folder, limit=SHOWN_FINDINGS, has_view=True)
    page = await asyncio.to_thread(queries.list_connections, folder, limit=SHOWN_CONNECTIONS)
    shown = {
        "name": document["name"],
        "expires_ns": opened.expires_ns,
        "is_anonymised": opened.address_key is not None,
        "capture": document["capture"],
        "summary": document["summary"],
        "verdict": document["verdict"],
        "answer": view["answer"],
        "glance": view["glance"],
        "sketches": {id: paths for id, paths in sketches.items() if view["glance"] and id == str(view["glance"]["id"])},
        "total_connections": page.total,
        "connections": queries.describe_rows(page.rows),
        "total_findings": sum(document["findings"]["counts"].values()),
        "findings": findings,
    }
    if mapping is not None:
        shown["name"] = "a capture"
        # Names of files and interfaces can reveal hosts as addresses do.
        shown["capture"] = {name: value for name, value in document["capture"].items() if name != "files"}
        shown = await asyncio.to_thread(mapping.document, shown)
    return shown
