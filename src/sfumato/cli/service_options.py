"""Options of whatever answers live events, and of commands that ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.cli.options import flag, option, required

if TYPE_CHECKING:
    from sfumato.service.event_log import EventLog

DATABASE = "SFUMATO_DATABASE_URL"
HOME: Any = required(
    f"Folder of registry and ledgers, made if new; or postgresql://..., or - for ${DATABASE}.",
    "--home",
)
SECRET_FILE: Any = option(
    "With PostgreSQL: secret of the digests of values, the same on all nodes (`key new`)."
)
LATE_EVENT: Any = option(
    "An event goes back in time: refuse, or accept (released as it comes).", default="refuse"
)
KEY_FOLDER: Any = option(
    "Folder of release keys (ID.key): coins that can be repeated for an audit."
)


class Gateway(options.Options):
    """A running service that is asked instead of its home."""

    url: str | None = option(
        "Ask a running service instead; the key is read from SFUMATO_ACCESS_KEY."
    )
    ca: str | None = option("File of the authority that signed the certificate of the service.")


class Log(options.Options):
    """What is written down about a program that runs on."""

    log: str | None = option("File of the log, JSON lines [standard error].")
    plain_names: bool = flag("--log-stream-names", "Streams by name in the log, not by digest.")

    def opened(self, secret: bytes) -> EventLog:
        """The log, whose digests of names are keyed by a secret."""
        from sfumato.service.event_log import EventLog, StreamNames, line_writer

        names = StreamNames.PLAIN if self.plain_names else StreamNames.DIGEST
        return EventLog(line_writer(self.log), secret, names=names)


class LiveRules(options.Options):
    """The release with which whatever answers live events is started."""

    model: str | None = option("The model that `sfumato fit` wrote.", "--model", "-m")
    allowed: options.Budget
    spread: options.Spread
    loss: str | None = options.LOSS
    way: options.Way
    policy: str | None = options.COMPILED_POLICY
    late: str = LATE_EVENT
    missing: str = options.MISSING
    when_exhausted: str = options.WHEN_EXHAUSTED
    when_unknown: str = options.WHEN_UNKNOWN
    key_folder: str | None = KEY_FOLDER
    coins: str | None = option("Id of its release key, in --key-folder (`key add`).")

    def check_model(self) -> None:
        """Refuse a budget without a model."""
        from sfumato.core.errors import InvalidParameter

        if self.model is None and any(each is not None for each in vars(self.allowed).values()):
            raise InvalidParameter("--model", None, "be given with a budget")
