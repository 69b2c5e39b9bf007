"""API tokens: create, list, revoke; for callers with full access."""

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import AfterValidator, BaseModel, Field, StringConstraints

from tcpwin_web.api.parts import RowId, ServiceOf, storable
from tcpwin_web.api.strict import Body
from tcpwin_web.captures import ConflictError
from tcpwin_web.security.scopes import Scope
from tcpwin_web.security.tokens import Token

router = APIRouter(tags=["tokens"])

MOST_DAYS = 3650
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64), AfterValidator(storable)]
ScopeField = Annotated[
    Literal["read", "upload", "admin"],
    Field(description="read; upload: also add, analyse, name and annotate captures; admin: everything"),
]


class NewToken(Body):
    """Name, scope and lifetime of a new token."""

    name: Annotated[Name, Field(examples=["CI of the web shop"])]
    scope: ScopeField = "read"
    days: Annotated[float, Field(gt=0, le=MOST_DAYS, examples=[90])] = 90


class TokenEntry(BaseModel):
    """A token, without its secret."""

    id: str
    name: str
    scope: ScopeField
    created_ns: int
    expires_ns: int
    revoked_ns: int | None
    is_valid: bool

    @classmethod
    def of(cls, token: Token) -> "TokenEntry":
        """Describe a token."""
        return cls(
            id=token.id,
            name=token.name,
            scope=token.scope.value,
            created_ns=token.created_ns,
            expires_ns=token.expires_ns,
            revoked_ns=token.revoked_ns,
            is_valid=token.why_over is None,
        )


class MadeToken(TokenEntry):
    """A new token; its secret is shown only once."""

    secret: str


class TokenList(BaseModel):
    """Tokens, newest first; expired and revoked ones are listed for 90 days."""

    tokens: list[TokenEntry]


@router.post("/tokens", status_code=201)
async def create_token(service: ServiceOf, request: Request, new: NewToken) -> MadeToken:
    """Create a token for a script or a person."""
    if not service.gate.is_closed:
        raise ConflictError("anyone who can reach this service has full access: set TCPWIN_TOKEN first")
    token, secret = await service.tokens.create(new.name, Scope(new.scope), days=new.days)
    await service.audit.note(request, "token.create", token.id)
    return MadeToken(**TokenEntry.of(token).model_dump(), secret=secret)


@router.get("/tokens")
async def list_tokens(service: ServiceOf) -> TokenList:
    """List all tokens except the service's own."""
    return TokenList(tokens=[TokenEntry.of(each) for each in service.tokens.list()])


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(service: ServiceOf, request: Request, token_id: RowId) -> Response:
    """Revoke a token, and end the logins made with it."""
    if not await service.data.reserve.spend(lambda: service.tokens.revoke(token_id)):
        raise HTTPException(404, "No valid token has this id.")
    await service.audit.note(request, "token.revoke", token_id)
    return Response(status_code=204)
