"""Ids of a request in, the capture, its analysis and its connection out, or a problem that says why not."""

from typing import Annotated, cast

from fastapi import Depends, HTTPException, Path, Request

import tcpwin
from tcpwin_web._captures import Capture, Captures


def shown_captures(request: Request) -> Captures:
    """Return the captures that this application shows."""
    return cast(Captures, request.app.state.captures)


ShownCaptures = Annotated[Captures, Depends(shown_captures)]


def find_capture(
    captures: ShownCaptures, capture_id: Annotated[str, Path(max_length=255, examples=["slow-reader"])]
) -> Capture:
    """Return the capture of that id; 404 if there is none."""
    if capture_id not in captures.by_id:
        raise HTTPException(404, "No capture has this id; /api/v1/captures lists those there are.")
    return captures.by_id[capture_id]


CaptureOfPath = Annotated[Capture, Depends(find_capture)]


def analyze_capture(captures: ShownCaptures, capture: CaptureOfPath) -> tcpwin.Analysis:
    """Return the capture's analysis; 422 if its file cannot be read as a capture."""
    try:
        return captures.analyze(capture)
    except (tcpwin.TcpwinError, OSError) as error:
        raise HTTPException(422, f"{capture.name} cannot be analysed: {_reason(error, capture)}") from error


AnalysisOfPath = Annotated[tcpwin.Analysis, Depends(analyze_capture)]


def find_connection(
    analysis: AnalysisOfPath, connection_id: Annotated[int, Path(ge=0, examples=[0])]
) -> tcpwin.Connection:
    """Return the connection of that number; 404 if the capture has fewer."""
    if connection_id >= len(analysis.connections):
        raise HTTPException(404, f"This capture has {len(analysis.connections)} connections, numbered from 0.")
    return analysis.connections[connection_id]


ConnectionOfPath = Annotated[tcpwin.Connection, Depends(find_connection)]


def _reason(error: Exception, capture: Capture) -> str:
    """Return the error's own words without the folder that the file lies in."""
    return str(error).replace(str(capture.path), capture.name)
