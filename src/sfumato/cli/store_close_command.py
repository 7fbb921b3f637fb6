"""`sfumato store close`: let a release answer nothing new."""

from __future__ import annotations

from sfumato.cli import options, service_options
from sfumato.cli.console import print_json, say
from sfumato.cli.options import argument, required


class _CloseOptions(options.Options):
    home: str | None = argument(
        "A folder that no service uses, or postgresql://user@host/name.", "[HOME]", default=None
    )
    release: str = required("The release that is closed.")
    gateway: service_options.Gateway
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

    if (given.home is None) == (given.gateway.url is None):
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

    assert given.gateway.url is not None
    path = f"/v1/releases/{quote(given.release, safe='')}/close"
    with asking(given.gateway.url, given.gateway.ca) as ask:
        return asked(ask, ReleaseLine, "POST", path).closed or ""


def _at_home(home: str, release: str) -> str:
    from sfumato.cli.access_places import idle_home
    from sfumato.store.release_end import close_release

    with idle_home(home, make=False) as opened:
        return close_release(opened, "command line", release).closed or ""
