"""`sfumato store close`: let a release answer nothing new."""

from __future__ import annotations

import os

from sfumato.cli import options
from sfumato.cli.console import print_json, say
from sfumato.cli.options import argument, option, required


class _CloseOptions(options.Options):
    home: str | None = argument(
        "A folder that no service uses, or postgresql://user@host/name.", "[HOME]", default=None
    )
    release: str = required("The release that is closed.")
    url: str | None = option(
        "Ask a running service instead; the key is read from SFUMATO_ACCESS_KEY."
    )
    ca: str | None = option("File of the authority that signed the certificate of the service.")
    shown: options.Shown


def close(given: _CloseOptions) -> None:
    """Let a release answer no more events, on all nodes; there is no way back.

    What was answered stays: it is told to events that come again, read and audited. Budgets that
    are left are never spent. When this returns nothing new is answered any more, by whatever node
    or bridge: each looks before it answers. The registry holds who closed it, when, and the head of
    its ledger, which `store check` compares from then on. Closing it again changes nothing.

    \b
    Examples:
      sfumato store close /var/lib/sfumato --release city-v1
      sfumato store close --url https://gateway.example --release city-v1
    """
    from sfumato.core.errors import InvalidParameter

    if (given.home is None) == (given.url is None):
        raise InvalidParameter("HOME", given.home, "be given, or else --url")
    closed = _at_service(given) if given.home is None else _at_home(given.home, given.release)
    if given.shown.as_json:
        print_json({"release": given.release, "closed": closed})
    elif not given.shown.quiet:
        say(f"{given.release} is closed since {closed}")


def _at_service(given: _CloseOptions) -> str:
    from urllib.parse import quote

    from sfumato.cli.access_places import asked, asking
    from sfumato.service.release_routes import ReleaseLine

    assert given.url is not None
    path = f"/v1/releases/{quote(given.release, safe='')}/close"
    with asking(given.url, given.ca) as ask:
        return asked(ask, ReleaseLine, "POST", path).closed or ""


def _at_home(home: str, release: str) -> str:
    from sfumato.core.errors import FileInUse, InvalidParameter
    from sfumato.store.home import is_postgres, open_home
    from sfumato.store.release_end import close_release

    if not is_postgres(home) and not os.path.isfile(f"{home}/registry.db"):
        raise InvalidParameter("HOME", home, "be the home of a service")
    try:
        opened = open_home(home)
    except FileInUse:
        rule = "not be served meanwhile; ask the service: --url, with SFUMATO_ACCESS_KEY"
        raise InvalidParameter("HOME", home, rule) from None
    with opened:
        return close_release(opened, "command line", release).closed or ""
