"""What a model tells about the people it was fitted to: a promise that stands in its file."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.printed import shown_up


@dataclass(frozen=True, slots=True)
class PrivateHistory:
    """How a model was fitted under differential privacy of whole people.

    Neighbouring histories differ by all rows of one person, who is in one of them alone. The model
    is a function of noisy counts and of what was public before, so it keeps their promise.

    Attributes:
        epsilon: What the model leaks about any one person, from the integers that were drawn from.
        unit: The column that tells people apart.
        contribution: Most transitions that were counted of one person.
        move_scale: Mean size of the noise of a count of transitions.
        start_scale: Mean size of the noise of a count of beginnings.
        simulated: Whether the noise can be guessed: then nothing is promised.

    Examples:
        >>> print(PrivateHistory(1.0, "user", 20, 22.2, 10.0, simulated=False))
        PureDP(1) for each user, whatever others know: at most 20 transitions counted of each, ...
    """

    epsilon: float
    unit: str
    contribution: int
    move_scale: float
    start_scale: float
    simulated: bool

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.count("contribution", self.contribution)
        for name in ("move_scale", "start_scale"):
            checks.positive(name, getattr(self, name))
        if not self.unit:
            raise InvalidParameter("unit", self.unit, "name the column that tells people apart")

    @property
    def guarantee(self) -> PureDP:
        """What the model promises to each person of its history."""
        return PureDP(self.epsilon)

    def __str__(self) -> str:
        if self.simulated:
            return "A SIMULATION: the noise in this model can be guessed; it protects nobody"
        scales = f"{shown_up(self.move_scale, 3)} and {shown_up(self.start_scale, 3)}"
        return (
            f"{self.guarantee} for each {self.unit}, whatever others know: at most "
            f"{self.contribution:,} transitions counted of each, and where each began; noise of "
            f"mean size {scales}"
        )
