"""Everything Sfumato raises on purpose.

SfumatoError
├── InvalidParameter     a value was wrong when it was given                  (also ValueError)
├── UnknownSymbol        a person's value lies outside the alphabet           (also ValueError)
├── BudgetExceeded       a release would cost more than is left
├── InsecureRandomness   a simulation's coins were offered to a real release
├── InterruptedStep      an exception broke into an earlier step of a fleet
├── ForkedUse            a forked child used what its parent had begun
├── FileInUse            another run writes or holds the file
├── SolverFailed         an optimiser did not reach a certified answer
└── CorruptData          stored bytes are damaged, or of another kind or version

No message quotes a person's value.
"""

from __future__ import annotations

import reprlib

_SHORT = reprlib.Repr()
_SHORT.maxstring = 240  # the path of a file, whole


class SfumatoError(Exception):
    """Root of every error that Sfumato raises on purpose.

    Examples:
        >>> import sfumato as sf
        >>> try:
        ...     sf.SIP(-1.0)
        ... except sf.SfumatoError as problem:
        ...     print(problem)
        epsilon must be ...
    """


class InvalidParameter(SfumatoError, ValueError):
    """A parameter lies outside its domain.

    Attributes:
        name: The parameter, as the caller spelled it.
        value: What was given.
        rule: What must hold.

    Examples:
        >>> raise InvalidParameter("epsilon", -1.0, "be finite and greater than 0")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: epsilon must be finite and greater than 0; got -1.0
    """

    def __init__(self, name: str, value: object, rule: str) -> None:
        self.name = name
        self.value = value
        self.rule = rule
        super().__init__(f"{name} must {rule}; got {_SHORT.repr(value)}")


class UnknownSymbol(SfumatoError, ValueError):
    """A value that should be released is not in the alphabet; the value is not quoted.

    Attributes:
        size: How many symbols the alphabet has.
    """

    def __init__(self, size: int, where: str = "value") -> None:
        self.size = size
        super().__init__(f"{where} must be one of the {size} symbols of the alphabet")


class BudgetExceeded(SfumatoError):
    """A release was refused; nothing was drawn and nothing was spent.

    Attributes:
        stream: The stream that asked.
        sequence: Which of its releases was refused, counted from 0.
        wanted: What the step would have cost.
        limit: What the budget leaves for it.
    """

    def __init__(self, stream: str, sequence: int, wanted: object, limit: object) -> None:
        self.stream = stream
        self.sequence = sequence
        self.wanted = wanted
        self.limit = limit
        super().__init__(
            f"releasing event {sequence} of stream {stream!r} would cost {wanted}; "
            f"its budget leaves {limit} for this step; this event was not released"
        )


class InsecureRandomness(SfumatoError):
    """Coins that can be guessed were offered where a person's data is released."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} needs secure() or keyed() randomness; seeded() coins can be guessed. "
            "Ask for a simulation by name to use them"
        )


class InterruptedStep(SfumatoError):
    """A fleet was interrupted in the middle of a step; what it drew never left."""

    def __init__(self) -> None:
        super().__init__(
            "a step of this fleet was interrupted; begin a new one from the states that were stored"
        )


class ForkedUse(SfumatoError):
    """A forked child used what its parent had begun: both would spend the same budget."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"a {kind} must be used in the process that made it; this one was forked. "
            "Begin another one here, from a stored state if there is one"
        )


class FileInUse(SfumatoError):
    """A file is being written, or held, by another run; nothing was done.

    Attributes:
        path: The file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: must not be in use; another run writes or holds it: let that one end first, "
            "or name another file"
        )


class SolverFailed(SfumatoError):
    """An optimiser stopped without a certified answer; nothing was released."""


class CorruptData(SfumatoError):
    """Stored bytes were refused: damaged, or of another kind or version."""
