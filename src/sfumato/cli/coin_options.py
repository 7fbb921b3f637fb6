"""Where the coins of a command come from: a key, a seed for a simulation, or neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.cli.console import say
from sfumato.cli.options import Options, flag, option

if TYPE_CHECKING:
    from sfumato.core.purpose import Purpose
    from sfumato.core.randomness import Randomness

SEED = option("INSECURE: guessable coins; the output is a simulation, not a release.")

SHARED_KEY = flag("--shared-key", "The key file may be readable by group or others.")


class Secret(Options):
    """A key for coins that are the same again."""

    key_file: str | None = option("Secret for coins that are the same again for the same values.")
    shared_key: bool = SHARED_KEY

    def coins(self, seed: int | None, public: list[str | None]) -> Randomness | None:
        """Coins from a secret or a seed; None, which means secure ones, if neither is given.

        Args:
            seed: For a simulation.
            public: The other files of the command: none of them is a secret.
        """
        from sfumato.core.errors import InvalidParameter
        from sfumato.core.randomness import keyed, seeded

        if self.key_file is not None and seed is not None:
            raise InvalidParameter("--seed", seed, "not come with --key-file")
        if self.shared_key and self.key_file is None:
            raise InvalidParameter("--shared-key", True, "come with --key-file")
        if self.key_file is None:
            return None if seed is None else seeded(seed)
        return keyed(self._read(public))

    def commitment(self, *, quiet: bool) -> str | None:
        """The commitment to the key, to leave with what it is used for; None without a key.

        A key that `key new` cannot have made has none: a hash of it would show who guesses it. That
        is told, unless nobody wants to hear it.
        """
        from sfumato.store.keys import commitment_of

        secret = self.read()
        if secret is None:
            return None
        made = commitment_of(secret)
        if made is None and not quiet:
            say(
                "no commitment to the key leaves with this: the key may be guessed, and a hash "
                "would show who guesses right (`sfumato key new` makes one that is committed to)"
            )
        return made

    def read(self) -> bytes | None:
        """The key itself; None if there is none."""
        return None if self.key_file is None else self._read([])

    def _read(self, public: list[str | None]) -> bytes:
        from sfumato.core.errors import InvalidParameter
        from sfumato.store.keys import read_key

        assert self.key_file is not None  # whoever asks has one
        try:
            return read_key(self.key_file, public=public, shared=self.shared_key)
        except InvalidParameter as problem:
            rule = problem.rule.replace("be declared shared", "come with --shared-key")
            raise InvalidParameter("--key-file", problem.value, rule) from None


class StreamSecret(Secret):
    """A key for coins of streams."""

    key_file: str | None = option(
        "Secret for coins that depend on plan, stream and sequence alone."
    )


def purpose_of(seed: int | None) -> Purpose:
    """A release, unless its coins can be guessed."""
    from sfumato.core.purpose import Purpose

    return Purpose.RELEASE if seed is None else Purpose.SIMULATION


def warn_of_seed(seed: int | None) -> None:
    """Say that a seed was given."""
    if seed is not None:
        say("warning: --seed makes guessable coins; treat the output as a simulation")
