"""The dashboard's files, served from memory: no other host is ever asked for anything.

They are read once, from the package. Nothing inline is allowed to run: scripts and styles are files
of this service, and a browser is told so (`Content-Security-Policy`). The files hold no data; what
they show is asked for with an access key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""What each kind of file is called; a file of another kind is not served."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Files change with the program alone: a browser asks whether they did, and mostly gets a 304.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class DashboardFile:
    """A file as it is sent."""

    body: bytes
    media: str
    etag: str


@lru_cache(maxsize=1)
def dashboard_files() -> Mapping[str, DashboardFile]:
    """All files, by their path below the root.

    Examples:
        >>> dashboard_files()["index.html"].media
        'text/html; charset=utf-8'
    """
    found = {}
    for path, entry in _below(files("sfumato.service") / "dashboard", ""):
        suffix = path[path.rfind(".") :]
        if suffix in MEDIA:
            body = entry.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found[path] = DashboardFile(body, MEDIA[suffix], etag)
    return found


def dashboard_routes() -> list[Route]:
    """Routes of the page at `/` and of its files, for GET and HEAD."""
    pages = {f"/{path}": path for path in dashboard_files()}
    pages["/"] = "index.html"
    return [Route(path, _endpoint(name), methods=["GET"]) for path, name in sorted(pages.items())]


def _endpoint(name: str) -> Callable[[Request], Awaitable[Response]]:
    found = dashboard_files()[name]

    async def sent(request: Request) -> Response:
        headers = {**HEADERS, "ETag": found.etag}
        asked = request.headers.get("if-none-match", "")
        if found.etag in [tag.strip().removeprefix("W/") for tag in asked.split(",")]:
            return Response(status_code=304, headers=headers)
        return Response(found.body, headers=headers, media_type=found.media)

    return sent


def _below(folder: Traversable, before: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.is_dir():
            yield from _below(entry, f"{before}{entry.name}/")
        else:
            yield f"{before}{entry.name}", entry
