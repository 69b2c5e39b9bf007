"""Refuse names that the API does not know, in query strings and bodies: a misspelt option must not be dropped."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, model_validator

MOST_SHOWN = 60


class Body(BaseModel):
    """A JSON body without unknown names."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            known = [each.alias or name for name, each in cls.model_fields.items()]
            if reason := unknown_name(value, known):
                raise ValueError(reason)
        return value


async def refuse_unknown(request: Request) -> None:
    """Answer 422 if the query string has a name that the route does not have, or repeats one that takes one value."""
    route, query = request.scope.get("route"), request.query_params
    if not isinstance(route, APIRoute) or not query:
        return
    names = _query_names(route.dependant)
    if reason := unknown_name(query.keys(), names):
        raise HTTPException(422, f"{reason[:1].upper()}{reason[1:]}.")
    for name, is_list in names.items():
        if not is_list and len(query.getlist(name)) > 1:
            raise HTTPException(422, f"{name!r} takes one value, but is given several times.")


def _query_names(dependant: Dependant) -> dict[str, bool]:
    """Return the names in the query string of a route, and whether each takes several values."""
    names = {each.alias: _is_list(each.field_info.annotation) for each in dependant.query_params}
    for each in dependant.dependencies:
        names |= _query_names(each)
    return names


def _is_list(annotation: Any) -> bool:
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))


def unknown_name(shown: Collection[str], known: Collection[str]) -> str | None:
    """Return what is wrong with the first unknown name, and the nearest known one; None if all are known."""
    name = next((each for each in shown if each not in known), None)
    if name is None:
        return None
    text = f"unknown name {name[:MOST_SHOWN]!r}"
    if close := get_close_matches(name[:MOST_SHOWN].lower(), known, n=1, cutoff=0.5):
        return f"{text}: did you mean {close[0]!r}?"
    return f"{text}: choose one of {', '.join(sorted(known))}" if known else f"{text}: it takes no names here"
