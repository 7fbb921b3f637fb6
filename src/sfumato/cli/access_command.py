"""`sfumato access`: who may ask a service, and for what."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sfumato.cli import options, service_options
from sfumato.cli.console import print_json, print_line, say, table
from sfumato.cli.options import argument, option

if TYPE_CHECKING:
    from sfumato.service.key_documents import KeyBody, NewKeyBody

HELP = """Access keys of a service: who may ask it, and for what.

    \b
    1. sfumato access new home --stream 'ward-3-*' --action release --note "ward 3"
    2. give the printed key to whoever sends events; it is shown this once
    3. sfumato access rotate home ID      a new key; the old one ends after a day
    4. sfumato access revoke home ID      at once

    A key opens only what it names: actions (release: send events; read: answers and budgets; admin:
    releases and keys; metrics: counts) on streams (a name, `prefix*`, or `*` for all). No action
    implies another. With --release it opens those releases alone, and is told of others what is
    told of none. The home keeps a hash: a key that was lost is replaced, never shown again.

    While the service runs it holds its home: ask it, with the key of an administrator.

    \b
      export SFUMATO_ACCESS_KEY=sfk_...
      sfumato access list --url https://gateway.example

    Every change stands in the registry of the home, with who made it.
    """
_HOME = argument("The home of a service that is not running.", "HOME", default=None)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


class _Place(options.Options):
    home: str | None = _HOME
    gateway: service_options.Gateway
    shown: options.Shown


class _NewOptions(options.Options):
    place: _Place
    stream: list[str] | None = option("A stream, `prefix*`, or `*`; may be given several times.")
    action: list[str] | None = option(
        "release, read, admin or metrics; may be given several times."
    )
    expires: str | None = option("When it ends: 90d, 12h, or 2027-01-31. Never if not given.")
    release: list[str] | None = option(
        "A release that it is limited to; may be given several times. All if not given."
    )
    note: str = option("Whose key it is, for people.", default="")
    requests: int | None = option("Requests a second that it may ask for; twice that at once.")
    events: int | None = option("Events a second that it may ask for; twice that at once.")


def new(given: _NewOptions) -> None:
    """Make an access key, and print it: this once.

    \b
    Examples:
      sfumato access new home --stream '*' --action release --action read --expires 90d
      sfumato access new --url https://gateway.example --stream ann --action read
      sfumato access new home --stream '*' --action release --release city-v2
    """
    from sfumato.cli.access_places import key_place

    wanted = _wanted(given)
    place = given.place
    with key_place(place.home, place.gateway.url, place.gateway.ca, make=True) as keys:
        _print_new(place.shown, keys.new(wanted))


def _wanted(given: _NewOptions) -> Any:
    from sfumato.core.errors import InvalidParameter
    from sfumato.service.access_keys import Action
    from sfumato.service.key_documents import KeyRequest

    if not given.stream:
        raise InvalidParameter("--stream", "none", "be given: a name, `prefix*`, or `*` for all")
    known = {action.value for action in Action}
    if not given.action or not known.issuperset(given.action):
        raise InvalidParameter("--action", given.action, f"be some of {', '.join(Action)}")
    wanted = KeyRequest(
        list(given.stream),
        [Action(each) for each in dict.fromkeys(given.action)],
        None if given.expires is None else moment(given.expires, datetime.now(UTC)),
        given.note,
        _rate(given),
        None if not given.release else list(dict.fromkeys(given.release)),
    )
    wanted.grant()  # what is wrong with it is said before a home is opened
    return wanted


def _rate(given: _NewOptions) -> Any:
    from sfumato.service.key_documents import LimitBody, RateBody
    from sfumato.service.rate_limits import USUAL_RATE, Limit

    if given.requests is None and given.events is None:
        return None
    usual = (USUAL_RATE.requests, USUAL_RATE.events)
    asked = (given.requests, given.events)
    limits = [
        one if rate is None else Limit(rate, 2 * rate)
        for one, rate in zip(usual, asked, strict=True)
    ]
    return RateBody(*(LimitBody(limit.per_second, limit.burst) for limit in limits))


class _ListOptions(options.Options):
    place: _Place


def show(given: _ListOptions) -> None:
    """List the access keys, those of no use any more among them.

    \b
    Example:
      sfumato access list home
    """
    from sfumato.cli.access_places import key_place

    place = given.place
    with key_place(place.home, place.gateway.url, place.gateway.ca, make=False) as keys:
        found = keys.keys()
    if place.shown.as_json:
        print_json({"keys": [_plain(key) for key in found]})
        return
    columns = ["id", "state", "actions", "streams", "releases", "expires", "note"]
    table(f"{len(found):,} access keys", columns, [_row(key) for key in found])


class _OneOptions(options.Options):
    home_or_id: list[str] = argument(
        "The home, and the id of the key; with --url the id.", "[HOME] ID"
    )
    gateway: service_options.Gateway
    shown: options.Shown


class _RotateOptions(_OneOptions):
    overlap: str = option("How long the old key stays valid: 1d, 2h, 0s.", default="1d")


def revoke(given: _OneOptions) -> None:
    """Make an access key useless: at once where it is asked, within a second on other nodes.

    \b
    Examples:
      sfumato access revoke home 5d41402abc4b2a76
      sfumato access revoke --url https://gateway.example 5d41402abc4b2a76
    """
    from sfumato.cli.access_places import key_place

    home, id_ = _named(given)
    with key_place(home, given.gateway.url, given.gateway.ca, make=False) as keys:
        ended = keys.revoke(id_)
    if given.shown.as_json:
        print_json(_plain(ended))
    elif not given.shown.quiet:
        say(f"{ended.id} is revoked")


def rotate(given: _RotateOptions) -> None:
    """Make a new key with the same scope, and print it; the old one ends after an overlap.

    Put the new key in the place of the old one within that time: nothing is refused meanwhile.

    \b
    Example:
      sfumato access rotate home 5d41402abc4b2a76 --overlap 2h
    """
    from sfumato.cli.access_places import key_place
    from sfumato.service.key_documents import RotationRequest

    home, id_ = _named(given)
    wanted = RotationRequest(int(span("--overlap", given.overlap).total_seconds()))
    with key_place(home, given.gateway.url, given.gateway.ca, make=False) as keys:
        _print_new(given.shown, keys.rotate(id_, wanted))


def _named(given: _OneOptions) -> tuple[str | None, str]:
    from sfumato.core.errors import InvalidParameter

    wanted = 1 if given.gateway.url is not None else 2
    if len(given.home_or_id) != wanted:
        rule = "be the id of a key alone with --url, else a home and the id of a key"
        raise InvalidParameter("arguments", len(given.home_or_id), rule)
    return (None if given.gateway.url is not None else given.home_or_id[0]), given.home_or_id[-1]


def span(name: str, text: str) -> timedelta:
    """A length of time as it is typed.

    Examples:
        >>> span("--overlap", "90m")
        datetime.timedelta(seconds=5400)
    """
    from sfumato.core.errors import InvalidParameter

    found = _SPAN.fullmatch(text)
    if found is None:
        raise InvalidParameter(name, text, "be a number with s, m, h or d behind it: 12h")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def moment(text: str, now: datetime) -> datetime:
    """A time to come as it is typed: so long from now, or a date, whose day begins in UTC.

    Examples:
        >>> moment("2027-01-31", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
        '2027-01-31T00:00:00+00:00'
    """
    from sfumato.core.errors import InvalidParameter

    if _SPAN.fullmatch(text):
        return now + span("--expires", text)
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidParameter("--expires", text, "be 90d, 12h, or a date: 2027-01-31") from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def _print_new(shown: options.Shown, made: NewKeyBody) -> None:
    if shown.as_json:
        print_json({"key": made.key, "access": _plain(made.access)})
        return
    print_line(made.key)
    if not shown.quiet:
        say("this key is shown once; whoever has it may ask, so keep it like a password")


def _plain(key: KeyBody) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(key)
    return plain


def _row(key: KeyBody) -> list[str]:
    state = "valid" if key.valid else "revoked" if key.revoked is not None else "expired"
    ends = "never" if key.expires is None else key.expires.isoformat(timespec="seconds")
    where = "all" if key.releases is None else " ".join(key.releases)
    return [key.id, state, ",".join(key.actions), " ".join(key.streams), where, ends, key.note]
