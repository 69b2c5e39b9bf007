"""Published results next to the lab's own runs."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Response

from tcpwin.reference import describe_cell, describe_reference, matrix, references
from tcpwin_web.api.parts import as_json

router = APIRouter(tags=["references"])


@router.get("/references")
def list_references() -> Response:
    """Return all references with sources, notes and runs, and the published matrix next to the lab's."""
    return as_json(
        {
            "references": [describe_reference(each) for each in references().values()],
            "matrix": [describe_cell(each) for each in matrix()],
        }
    )


@router.get("/references/{name}")
def show_reference(name: Annotated[str, Path(max_length=64, examples=["cloudflare-oscil-300ms"])]) -> Response:
    """Return one reference with its runs."""
    found = references().get(name)
    if found is None:
        raise HTTPException(404, "No reference has this name; /api/v1/references lists them.")
    return as_json(describe_reference(found))
