"""`sfumato key`: keys for coins that can be replayed, and commitments to them."""

from __future__ import annotations

import typer

from sfumato.cli import options
from sfumato.cli.coin_options import SHARED_KEY
from sfumato.cli.console import FAILED_AUDIT, print_json, print_line, say
from sfumato.cli.options import argument, option, required

HELP = """Keys for coins, and commitments that are published before the data.

    \b
    1. sfumato key new year.key                 before there are data
    2. sfumato key commit year.key              publish what it prints: a paper, a log, a regulator
    3. sfumato release ... --key-file year.key  its commitment goes into OUTPUT.plan.json
    4. sfumato audit ... --key-file year.key --against live.csv --commitment 5d41...

    With the key and the true values an auditor replays every draw: a single coin that was turned
    round shows. What it does not show: that the key was drawn at random. Who can try many
    keys on the data may choose one that he likes, so a commitment counts from the day on which
    it was published, and only before the data were there. A key and the released values tell the
    true ones: keep it as you keep them. Keys are never printed.
    """
_KEY = argument("The key file.", "FILE")


class _NewOptions(options.Options):
    path: str = argument("A file that does not exist.", "FILE")
    shown: options.Shown


def new(given: _NewOptions) -> None:
    """Make a key of 32 random bytes, for its owner alone (mode 600), and print its commitment.

    A file that exists is never overwritten: what was drawn with its key could not be replayed.

    \b
    Example:
      sfumato key new year.key
    """
    from sfumato.store.keys import key_commitment, new_key

    commitment = key_commitment(new_key(given.path))
    _print(given.shown, {"key_file": given.path, "commitment": commitment}, commitment)
    if not given.shown.no_progress:
        say(f"{given.path}: 32 random bytes; publish the commitment before there are data")


class _CommitOptions(options.Options):
    path: str = _KEY
    name: str | None = option("Bind it to a name too: what the key is for.")
    shared_key: bool = SHARED_KEY
    shown: options.Shown


def commit(given: _CommitOptions) -> None:
    """Print the commitment to a key: a hash to be published before the data are there.

    It is a SHA-256 of the key, and of the name if one is given; it tells nothing of a random key.
    Only keys that `key new` made have one. Words, digits and other lengths are refused, for a hash
    would show who guesses them.

    \b
    Examples:
      sfumato key commit year.key
      sfumato key commit year.key --name "town, counts of 2026"
    """
    from sfumato.store.keys import key_commitment, read_key

    commitment = key_commitment(read_key(given.path, shared=given.shared_key), given.name)
    _print(given.shown, {"commitment": commitment, "name": given.name}, commitment)


class _CheckOptions(options.Options):
    path: str = _KEY
    commitment: str = argument("What `key commit` printed.", "COMMITMENT")
    shared_key: bool = SHARED_KEY
    shown: options.Shown


def check(given: _CheckOptions) -> None:
    """Whether a commitment is to this key. Exit code 1 if it is not.

    \b
    Example:
      sfumato key check year.key 5d41402abc4b2a76b9719d911017c592...
    """
    from sfumato.store.keys import is_committed, read_key

    fits = is_committed(read_key(given.path, shared=given.shared_key), given.commitment)
    told = "the commitment is to this key" if fits else "the commitment is NOT to this key"
    _print(given.shown, {"passed": fits}, told)
    if not fits:
        raise typer.Exit(FAILED_AUDIT)


class _DeriveOptions(options.Options):
    path: str = _KEY
    ledger: str | None = option("The ledger that a service wrote with this key.")
    checkpoint: str | None = option("The checkpoint of `spark stream`: its folder on this machine.")
    output: str = required("A file that does not exist: the key of that alone.", "--output", "-o")
    shared_key: bool = SHARED_KEY
    shown: options.Shown


def derive(given: _DeriveOptions) -> None:
    """Make the key that one ledger, or checkpoint, was drawn with, from that of all.

    A service draws with another key in every ledger, and a streaming query of Spark in every
    checkpoint, so that two releases under the same rules share no coins. The key of one repeats its
    draws (`audit --ledger ... --key-file`), and tells nothing of the
    key that it comes from, nor of others.

    \b
    Examples:
      sfumato key derive keys/0a1b2c3d4e5f.key --ledger city-home/ledgers/city.ledger -o city.key
      sfumato key derive year.key --checkpoint city.checkpoint -o city.key
    """
    from sfumato.core.randomness import ledger_key
    from sfumato.store.keys import read_key, write_key

    kind, own = _released_under(given.ledger, given.checkpoint)
    secret = read_key(given.path, shared=given.shared_key)
    write_key(given.output, ledger_key(secret, own))
    told = f"{given.output}: the key of this {kind} alone"
    shown = own.hex() if kind == "ledger" else own.decode()
    _print(given.shown, {"key_file": given.output, kind: shown}, told)


def _released_under(ledger: str | None, checkpoint: str | None) -> tuple[str, bytes]:
    """What tells a release from others under its key: the id of its ledger, or of its query."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.engines.spark.checkpoint_identity import checkpoint_query
    from sfumato.store.ledger_reader import LedgerReader

    if ledger is not None and checkpoint is None:
        with LedgerReader(ledger) as reader:
            return "ledger", reader.front.id
    if checkpoint is not None and ledger is None:
        return "checkpoint", checkpoint_query(checkpoint).encode()
    raise InvalidParameter("--ledger", "both or none", "be given, or --checkpoint, not both")


class _AddOptions(options.Options):
    home: str = argument("The home of a service: its folder, or postgresql://...", "HOME")
    key_folder: str = required("Folder of the keys, ID.key each: what `serve` is given, too.")
    id: str | None = option("Take the file ID.key that is there [a new key is made].")
    in_place_of: str | None = option("Id of the key whose place it takes: a rotation.")
    shown: options.Shown


def add(given: _AddOptions) -> None:
    """Give a service a key for its coins: made, committed to in its registry, and named by an id.

    Releases that are begun with it (`serve --key-folder KEYS --coins ID`) draw from it, so that an
    auditor who is given the key can repeat every draw; each answer names its key. With
    --in-place-of, releases of the old key draw from the new one from the next start on: nothing
    that was answered is drawn again, and the old key is kept for audits. The service must not run
    on a folder meanwhile; of PostgreSQL all nodes need the same files.

    \b
    Examples:
      sfumato key add city-home --key-folder keys
      sfumato key add city-home --key-folder keys --in-place-of 0a1b2c3d4e5f
    """
    from sfumato.service.release_keys import ReleaseKeys
    from sfumato.store.home import open_home
    from sfumato.store.keys import key_commitment

    home = open_home(given.home)
    try:
        keys = ReleaseKeys(given.key_folder, home.registry)
        before = given.in_place_of
        if given.id is None:
            key = keys.add("command line", in_place_of=before)
        else:
            key = keys.adopt("command line", given.id, in_place_of=before)
    finally:
        home.close()
    commitment = key_commitment(key.secret)
    _print(given.shown, {"id": key.id, "commitment": commitment}, f"{key.id} {commitment}")
    if not given.shown.no_progress:
        say(f"next: sfumato serve ... --key-folder {given.key_folder} --coins {before or key.id}")


def _print(shown: options.Shown, document: dict[str, object], line: str) -> None:
    if shown.as_json:
        print_json(document)
    else:
        print_line(line)
