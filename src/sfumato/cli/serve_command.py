"""`sfumato serve`: releases behind HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from sfumato.cli import options, service_options
from sfumato.cli.console import print_line, say
from sfumato.cli.options import option
from sfumato.cli.service_options import DATABASE

if TYPE_CHECKING:
    from sfumato.service.assembly import Gateway
    from sfumato.service.settings import Settings
    from sfumato.store.home import Home
    from sfumato.store.home_anchor import HomeAnchor


class _Listen(options.Options):
    host: str | None = option("Address to listen on [127.0.0.1: this machine alone].")
    port: int | None = option("Port to listen on [8477]; 0 for any that is free.")
    uds: str | None = option("A Unix socket to listen on instead, for its owner and group.")
    tls_cert: str | None = option("Certificates of the service (PEM), with --tls-key.")
    tls_key: str | None = option("Private key of the certificate (PEM).")
    tls_password_file: str | None = option("File with the password of the private key.")
    tls_client_ca: str | None = option("Only askers whose certificate these authorities signed.")
    metrics_port: int | None = option("Also serve /metrics on this port of 127.0.0.1, keyless.")
    origin: list[str] | None = option("A site whose pages may ask (CORS); nobody if not given.")


class _ServeOptions(options.Options):
    home: str = service_options.HOME
    secret_file: str | None = service_options.SECRET_FILE
    anchor_folder: str | None = option(
        "With PostgreSQL: heads that this node saw, to refuse an older database [SECRET.anchors]."
    )
    name: str = option("Name of the release that the options below describe.", default="default")
    rules: service_options.LiveRules
    batch: int | None = option("Release so many values of a stream together.")
    listen: _Listen
    config: str | None = option("Settings in TOML; what is typed wins.")
    logged: service_options.Log
    shown: options.Shown


def serve(given: _ServeOptions) -> None:
    """Serve releases over HTTP and WebSocket: an answer leaves after it is durable.

    The home keeps everything: a registry of models, releases and access keys, and a ledger for each
    release, which `sfumato ledger` and `sfumato audit` read as ever. An event that comes again gets
    its old answer, through crashes and restarts. With PostgreSQL several nodes share a home.

    With --model and a budget, a release of that name is made at the first start, by the same rules
    as `sfumato release`, and is the default; later starts may leave them out. Rules never change: a
    start with other rules is refused; give another --name, or make releases over HTTP
    (POST /v1/releases).

    Nobody is answered without an access key. The first start makes one that may do everything and
    prints it once; `sfumato access new` makes others. By default only this machine can ask; for
    others add --host and --tls-cert, or a proxy.

    SIGTERM or SIGINT ends the service in order: what was taken is answered. A second one ends it at
    once; the ledger is whole either way. The heads of registry and ledgers are printed at the start
    and at the end, and logged every minute when they have moved: keep them elsewhere.

    \b
    Examples:
      sfumato serve --home city-home --model city.model --epsilon 0.5
      sfumato serve --home city-home --port 9000
      sfumato serve --home city-home --name v2 --model city2.model --budget 10 --window 50
      sfumato serve --home city-home --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      SFUMATO_DATABASE_URL=postgresql://... sfumato serve --home - --secret-file home.key

    \b
    Then:
      curl -H "Authorization: Bearer sfk_..." -H "Content-Type: application/json" \\
        -d '{"id": "e1", "value": "home"}' http://127.0.0.1:8477/v1/streams/ann/events
    """
    _check_extra()
    from sfumato.service.hardening import environment_secret, harden_process
    from sfumato.service.server import listening
    from sfumato.store.home import open_home

    settings = _settings(given)
    _check_release(given)
    harden_process()  # before anything secret is read
    url = environment_secret(DATABASE)
    place = url if given.home == "-" and url else given.home
    _check_secret(place, given.secret_file)
    with (
        listening(settings) as own,
        open_home(place, given.secret_file, given.anchor_folder) as home,
    ):
        _serve_home(given, settings, home, own)


def _check_extra() -> None:
    from importlib.util import find_spec

    from sfumato.core.errors import InvalidParameter

    needed = ("starlette", "uvicorn", "uvloop", "httptools", "websockets", "prometheus_client")
    lacking = [name for name in needed if find_spec(name) is None]
    if lacking:
        rule = 'be complete for a service: pip install "sfumato[service]"'
        raise InvalidParameter("the installation", f"no {', '.join(lacking)}", rule)


def _check_secret(place: str, secret_file: str | None) -> None:
    """A shared home opens no ledger without the secret that all nodes share."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.home import is_postgres

    if is_postgres(place) and secret_file is None:
        rule = "be given for PostgreSQL: the key file that all nodes share (sfumato key new)"
        raise InvalidParameter("--secret-file", None, rule)


def _check_release(given: _ServeOptions) -> None:
    """Refuse half of the rules of a release, before anything is opened."""
    from sfumato.stream.release_spec import ReleaseSpec

    given.rules.check_model()
    if given.rules.model is not None:
        options.spec_from(
            ReleaseSpec, given, method="", policy=None, model=None, every=None
        ).schedule()


def _settings(given: _ServeOptions) -> Settings:
    from sfumato.service.settings import read_settings

    listen = given.listen
    tls = {
        "certificate": listen.tls_cert,
        "key": listen.tls_key,
        "password_file": listen.tls_password_file,
        "client_ca": listen.tls_client_ca,
    }
    typed: dict[str, Any] = {
        "host": listen.host,
        "port": listen.port,
        "uds": listen.uds,
        "metrics_port": listen.metrics_port,
        "tls": {name: value for name, value in tls.items() if value is not None} or None,
    }
    return read_settings(given.config, {k: v for k, v in typed.items() if v is not None})


def _serve_home(given: _ServeOptions, settings: Settings, home: Home, own: socket.socket) -> None:
    from sfumato.service.assembly import assembled, controlled
    from sfumato.service.event_log import routed
    from sfumato.service.server import run

    control = controlled(home)
    log = given.logged.opened(control.secret("log"))
    gateway = assembled(
        home,
        log,
        control,
        limits=settings.limits,
        node=f"{socket.gethostname()}:{settings.uds or own.getsockname()[1]}",
        coin_keys=given.rules.key_folder,
        origins=tuple(given.listen.origin or ()),
    )
    _establish(given, gateway)
    admin = control.first_key()
    with routed(log):
        run(lambda: _main(given, settings, gateway, own, admin))


async def _main(
    given: _ServeOptions,
    settings: Settings,
    gateway: Gateway,
    own: socket.socket,
    admin: str | None,
) -> None:
    from sfumato.service.hardening import tls_context
    from sfumato.service.head_log import Moment
    from sfumato.service.server import address_of, metrics_listener, serve

    tls = settings.tls
    context = None
    if tls is not None:
        context = tls_context(tls.certificate, tls.key, tls.password_file, tls.client_ca)
    url = address_of(own, tls=tls is not None)
    following = asyncio.ensure_future(gateway.follow())
    try:
        await gateway.open()
        heads = await asyncio.to_thread(gateway.heads.tell, Moment.START)
        with metrics_listener(settings.metrics_port, gateway.releases.metrics):
            # Modules and models stay for good: to go through them again and again, in the midst of
            # requests, is no use.
            gc.freeze()
            await serve(
                gateway.service,
                own,
                settings.limits,
                app=gateway.app,
                tls=context,
                announce=lambda: _announce(given, gateway, url, admin, heads),
            )
        _tell_end(given, await asyncio.to_thread(gateway.heads.tell, Moment.END))
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


def _announce(
    given: _ServeOptions,
    gateway: Gateway,
    url: str,
    admin: str | None,
    heads: HomeAnchor | None,
) -> None:
    """Say where the service is, and the first key, which is in nobody's memory after this."""
    releases = gateway.releases
    gateway.log.event("listening", address=url, process=os.getpid(), version=_version())
    for state in releases.states():
        if state.detail:
            say(f"release {state.name} could not be opened: {state.detail}")
    if given.shown.as_json:
        states = {state.name: state.status.value for state in releases.states()}
        document: dict[str, Any] = {
            "listening": url,
            "default": releases.default,
            "releases": states,
        }
        document |= {} if heads is None else {"heads": _heads(heads)}
        document |= {} if admin is None else {"admin_key": admin}
        print_line(json.dumps(document))  # one line, for whoever waits for one
        return
    if admin is not None:
        print_line(f"access key of the administrator, shown this once: {admin}")
    if releases.default is None and not given.shown.quiet:
        say("no release yet: start with --model and a budget, or POST /v1/releases")
    _print_heads(given, heads)
    print_line(f"listening on {url}")


def _tell_end(given: _ServeOptions, heads: HomeAnchor | None) -> None:
    """Say how far the home has come: to be compared with what the next start says."""
    try:
        if given.shown.as_json:
            document = {"ended": True} | ({} if heads is None else {"heads": _heads(heads)})
            print_line(json.dumps(document))
        else:
            _print_heads(given, heads)
        sys.stdout.flush()
    except OSError:  # whoever read it went away; the log has them, and the end is in order
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _heads(heads: HomeAnchor) -> dict[str, Any]:
    return {"registry": heads.registry, "ledgers": dict(heads.ledgers)}


def _print_heads(given: _ServeOptions, heads: HomeAnchor | None) -> None:
    if heads is None or given.shown.quiet:
        return
    print_line(f"head of the registry: {heads.registry}")
    for name, head in heads.ledgers.items():
        print_line(f"head of the ledger of {name}: {head}")


def _version() -> str:
    from importlib.metadata import version

    return version("sfumato")


# The release of the command line ------------------------------------------------------------------


def _establish(given: _ServeOptions, gateway: Gateway) -> None:
    """Make the release that the options describe, or see that it is there under these rules."""
    from sfumato.service.serve_release import establish

    path, coins = given.rules.model, given.rules.coins
    if path is not None:
        establish(gateway.desk, given.name, lambda begun: chosen_rules(given, path, begun), coins)


def chosen_rules(given: Any, path: str, begun: Any) -> Any:
    """The model, the complete rules and the policy of the command line.

    Args:
        given: What was typed: a class of options with `rules` and `shown`.
        path: Of the model.
        begun: The rules of the release that is there; None for a new one.
    """
    from msgspec import structs

    from sfumato.cli.rule_choice import RuleChoice
    from sfumato.core.checks import choice
    from sfumato.stream.policy_files import load_policy
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.tables.cells import Late, Missing

    rules: service_options.LiveRules = given.rules
    model = options.load_steady_model(
        path, "files are released with `release --time COLUMN --keep COLUMN --ledger FILE`"
    )
    policy = None if rules.policy is None else load_policy(rules.policy)
    spec = options.spec_from(
        ReleaseSpec,
        given,
        method="",
        missing=choice("missing", Missing, rules.missing),
        late=choice("late", Late, rules.late),
        purpose="release",
        policy=None,
        model=None,
        every=None,
    )
    chosen = RuleChoice(path, model, rules.way, rules.spread, given.shown)
    spec = chosen.completed(spec, policy, begun)
    if policy is None:
        policy = chosen.policy(spec, begun)
    spec = structs.replace(spec, policy=None if policy is None else policy.fingerprint)
    return model, spec, policy
