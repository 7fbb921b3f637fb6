"""Headers that tell browsers to be careful, and who of other sites may ask at all: nobody."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import lru_cache
from typing import TypeAlias

from sfumato.service.hardening import checked_origins
from sfumato.service.request_log import App, Message, Receive, Scope, Send

Header: TypeAlias = tuple[bytes, bytes]
CONTENT_POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
"""Scripts, styles, pictures and connections from the service itself alone, and none inline."""
_OURS = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_ALWAYS = {name: (name, value) for name, value in _OURS}
# What a reply says stays between the two: no cache of a browser or a proxy keeps it.
_UNLESS_SAID = (b"cache-control", b"no-store")
_OVER_TLS = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """ASGI middleware that adds them to every reply."""

    def __init__(self, app: App) -> None:
        """Add headers to the replies of an app."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, with headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        secure = scope.get("scheme") == "https"

        def send_careful(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                headers = careful(tuple(message.get("headers", ())), secure=secure)
                message = {**message, "headers": headers}
            return send(message)

        await self._app(scope, receive, send_careful)


@lru_cache(maxsize=1024)
def careful(headers: tuple[Header, ...], *, secure: bool) -> tuple[Header, ...]:
    """Headers of a reply, and those that every reply has in place of its own.

    Examples:
        >>> dict(careful(((b"cache-control", b"max-age=60"),), secure=False))[b"cache-control"]
        b'max-age=60'
    """
    names = [header[0].lower() for header in headers]
    kept = [one for name, one in zip(names, headers, strict=True) if name not in _ALWAYS]
    if _UNLESS_SAID[0] not in names:
        kept.append(_UNLESS_SAID)
    return (*kept, *_OURS, *((_OVER_TLS,) if secure else ()))


def guarded_app(app: App, origins: tuple[str, ...] = ()) -> App:
    """An app with careful headers; pages of other sites may ask only if their origin is named."""
    if not origins:
        return SecurityHeaders(app)
    from starlette.middleware.cors import CORSMiddleware

    named = checked_origins(origins)
    return CORSMiddleware(
        SecurityHeaders(app),
        allow_origins=named,
        allow_methods=("GET", "POST", "DELETE"),
        allow_headers=("Authorization", "Content-Type"),
        expose_headers=("Retry-After", "X-Request-Id"),
    )
