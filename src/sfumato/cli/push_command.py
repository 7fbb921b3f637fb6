"""`sfumato push`: a table of true values to a service, and its private values back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from sfumato.cli import options
from sfumato.cli.console import INTERRUPTED, print_json, progress, say
from sfumato.cli.options import flag, option, required

if TYPE_CHECKING:
    from sfumato.client.client import Client
    from sfumato.client.pushed_rows import Plan
    from sfumato.client.pushing import Ask, PushSpec
    from sfumato.client.wire import LiveEvent, Reply


class _Way(options.Options):
    """The service, and how to reach it."""

    to: str = required("https://HOST, http://localhost:PORT or unix:PATH of the service.")
    access_key_file: str | None = option(
        "File with the access key, its owner's alone [SFUMATO_ACCESS_KEY in the environment]."
    )
    release: str | None = option("The release that answers [where a stream began, or the default].")
    socket: bool = flag("--socket", "Over one WebSocket, pipelined, instead of requests.")
    ca: str | None = option("File of certificates that vouch for the service [the system's].")
    cleartext: bool = flag(
        "--cleartext", "True values may cross a network unencrypted (inside a protected one)."
    )
    patience: float = option("Seconds to try again while the service is away.", default=60.0)


class _PushOptions(options.Options):
    source: str = options.LIVE_INPUT
    way: _Way
    output: str = options.PRIVATE_OUTPUT
    stream: str = options.STREAM
    value: str = option("Column of values (x,y for a grid).", default="value")
    event: str | None = options.EVENT
    time: str | None = option(
        "Column of times: without --event, stream and time tell events apart."
    )
    source_name: str | None = option(
        "Name of the input: without --event and --time its rows are known by it and their number.",
        "--source",
    )
    missing: str = option(
        "What becomes of a missing value: refuse, drop (its row is left out), skip (its moment "
        "passes).",
        default="refuse",
    )
    refused: str = option(
        "A row that the service refuses: stop (no output; what was answered stays), or drop.",
        default="stop",
    )
    format: str | None = option("Format of stdin and stdout: csv (default) or jsonl.")
    separator: str | None = options.SEPARATOR
    shown: options.Shown


def push(given: _PushOptions) -> None:
    """Have a table released by a service, and write the private table as `release` does.

    What tells an event from all others follows from the table: --event, or the stream and --time,
    or --source and the number of the row. So a push can be run again at any time, after Ctrl-C, a
    crash or a lost connection: what was answered gets the same answer, nothing is drawn twice, and
    the file is the same. A file appears when it is complete; until then, after Ctrl-C, there is
    OUTPUT.part. With --release the rules go beside it, as OUTPUT.plan.json, for `sfumato audit` and
    `recover`.

    The access key comes from a file or from SFUMATO_ACCESS_KEY, never from the command line, where
    others could see it.

    \b
    Examples:
      sfumato push live.csv --to https://gate.example --release default --time when -o private.csv
      sfumato push live.parquet --to unix:/run/sfumato/http.sock --event id --socket -o private.csv
      tail -f live.csv | sfumato push - --to http://localhost:8477 --source meter-7 -o - | consumer
    """
    from sfumato.cli.table_output import named_options
    from sfumato.client.client import Client
    from sfumato.client.endpoint import read_access_key
    from sfumato.client.pushing import push_table
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.readers import Table

    if given.format not in (None, "csv", "jsonl"):
        raise InvalidParameter("--format", given.format, "be csv or jsonl")
    source = Table.at(given.source, given.format if given.source == "-" else None, given.separator)
    sink = Table.at(given.output, given.format if given.output == "-" else None)
    way, names = given.way, {"source": "--source", "missing": "--missing", "url": "--to"}
    with named_options({}, names | {"the stream column": "--stream", "ca": "--ca"}):
        spec = _spec(given)
        client = Client(
            way.to,
            read_access_key(way.access_key_file),
            release=way.release,
            retries=1000,
            deadline=way.patience,
            ca=way.ca,
            cleartext=way.cleartext,
        )
        with (
            client,
            _asking(client, socket=way.socket) as ask,
            progress("pushing", source.count(), given.shown.no_progress) as show,
        ):
            plan = None if sink.is_standard else _plan(client, spec)
            report = push_table(source, sink, ask, client.finish, spec, show, plan)
    if given.shown.as_json and not sink.is_standard:
        print_json({"output": given.output, **asdict(report)})
    elif not given.shown.quiet:
        say(
            f"{report.rows:,} rows, {report.repeated:,} of them answered before; "
            f"{report.refused:,} refused and left out; {report.streams:,} streams"
        )
    if report.continued:
        say(
            f"{report.continued:,} streams had answers before this push, and none of them was "
            "asked for again: new rows, or rows that were pushed before under other ids (--event, "
            "--time, --source) and have been released and charged once more (audit the output with "
            "--ledger and --coverage part: its streams began before it)"
        )
    if report.interrupted:
        held = (
            f", {report.waiting:,} rows were sent and have no answer yet" if report.waiting else ""
        )
        kept = "" if report.part is None else f" and in {report.part}"
        say(
            f"sfumato: interrupted; what was answered is complete{kept}{held}; push again to go "
            "on: the whole file is written then"
        )
        raise typer.Exit(INTERRUPTED)


def _plan(client: Client, spec: PushSpec) -> Plan | None:
    """Makes the rules beside the output, sealed to it; None where they are not known."""
    from sfumato.client.client_errors import ServiceRefused

    try:
        told = client.rules()
    except ServiceRefused:
        say("the rules are not written beside the output: the access key may not read them")
        return None
    if told["job"] != "release":
        how = "temporal audit" if told["job"] == "temporal" else "audit"
        say(f"no rules are written beside the output: `sfumato {how} --ledger` checks the ledger")
        return None
    if not told["only"]:
        say("no rules are written beside the output: name the release that answers, --release")
        return None
    event = {} if spec.events.event is None else {"event": spec.events.event}
    document = json.dumps(told["rules"] | event).encode()

    def plan(rows: int, streams: int, digest: str) -> bytes:
        from sfumato.store.attestation import program
        from sfumato.stream.seal import Seal, sealed

        seal = Seal(rows=rows, streams=streams, sha256=digest, program=program())
        return sealed(document, seal)

    return plan


def _spec(given: _PushOptions) -> PushSpec:
    from sfumato.client.pushing import PushSpec
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.tables.cells import Missing
    from sfumato.tables.input_groups import EventColumns

    if given.refused not in ("stop", "drop"):
        raise InvalidParameter("--refused", given.refused, "be stop or drop")
    return PushSpec(
        stream=given.stream,
        values=tuple(given.value.split(",")),
        events=EventColumns(given.event, given.time),
        source=given.source_name,
        missing=choice("missing", Missing, given.missing),
        drop_refused=given.refused == "drop",
    )


@contextmanager
def _asking(client: Client, *, socket: bool) -> Iterator[Ask]:
    """How events are sent: in requests, or on one socket."""
    if not socket:
        yield client.release_many
        return
    with client.session() as session:

        def ask(events: list[LiveEvent]) -> Iterable[Reply]:
            return session.replies(events)

        yield ask
