"""Every mechanism of the registry keeps the laws: one that is new needs a class here."""

import itertools
from typing import Any, ClassVar

import numpy as np

import sfumato as sf
from sfumato.column.mechanism_registry import MECHANISMS
from tests.contracts.mechanism_laws import MechanismLaws

SYMBOLS = ("a", "b", "c", "d")
SKEWED = (0.55, 0.3, 0.1, 0.05)
POINTS = 7
BELL = tuple(np.array([1.0, 4.0, 9.0, 12.0, 7.0, 3.0, 1.0]) / 37)
LOOSE = ((0.3, 1e-3), (1.0, 1e-3), (3.0, 0.0))


class SymbolLaws(MechanismLaws):
    """Four symbols, some of them rare."""

    @property
    def values(self) -> list[Any]:
        return list(SYMBOLS)

    def options(self) -> dict[str, Any]:
        return {"prior": dict(zip(SYMBOLS, SKEWED, strict=True))}

    def priors(self) -> list[list[float]]:
        return [list(SKEWED)]

    def loss(self, true: Any, output: Any) -> float:
        return float(true != output)


class NumberLaws(MechanismLaws):
    """Seven points, and people who stand on them."""

    budgets = LOOSE

    @property
    def values(self) -> list[Any]:
        return [float(point) for point in range(POINTS)]

    def options(self) -> dict[str, Any]:
        prior = sf.Prior(list(BELL), sf.Alphabet(range(POINTS), range(POINTS)))
        return {"prior": prior, "kind": "numbers", "interval": (0.0, 6.0), "points": POINTS}

    def priors(self) -> list[list[float]]:
        return [list(BELL)]

    def loss(self, true: Any, output: Any) -> float:
        return float(abs(true - output))


class TestOptimal(SymbolLaws):
    name = "optimal"


class TestOptimalWithinASet(SymbolLaws):
    """So much mass may move from one symbol to another: the corners of a ball of priors."""

    name = "optimal"
    radius: ClassVar[float] = 0.04

    def options(self) -> dict[str, Any]:
        return super().options() | {"radius": self.radius}

    def priors(self) -> list[list[float]]:
        unit, centre = np.eye(4), np.array(SKEWED)
        moves = itertools.permutations(range(4), 2)
        corners = [centre + self.radius * (unit[i] - unit[j]) for i, j in moves]
        return [list(centre), *(corner.tolist() for corner in corners)]


class TestCapped(SymbolLaws):
    """A cap on the model-free leakage that binds, whatever the budget."""

    name = "optimal"
    budgets = ((1.0, 0.0), (0.6, 0.0))

    def options(self) -> dict[str, Any]:
        return super().options() | {"ldp": 1.0}

    def test_the_cap_is_kept(self) -> None:
        for budget in self.budgets:
            assert self.sampled(budget)[0].certificate.ldp <= sf.LDP(1.0)


class TestCalibrated(SymbolLaws):
    name = "calibrated"


class TestContextFree(SymbolLaws):
    name = "context-free"


class TestPublished(SymbolLaws):
    """The paper's closed form, where it keeps its budget: two symbols, evenly likely."""

    name = "published"
    budgets = ((0.5, 0.0), (1.0, 0.0))

    @property
    def values(self) -> list[Any]:
        return ["a", "b"]

    def options(self) -> dict[str, Any]:
        return {"prior": {"a": 0.5, "b": 0.5}}

    def priors(self) -> list[list[float]]:
        return [[0.5, 0.5]]


class TestRandomizedResponse(SymbolLaws):
    name = "randomized-response"


class TestUnaryEncoding(SymbolLaws):
    name = "unary-encoding"


class TestSubsetSelection(SymbolLaws):
    name = "subset-selection"


class TestOptimalNumbers(NumberLaws):
    name = "optimal"


class TestLaplace(NumberLaws):
    name = "laplace"


class TestLaplaceEach(NumberLaws):
    name = "laplace-each"


class TestLaplaceLocal(NumberLaws):
    name = "laplace-local"


class TestGaussian(NumberLaws):
    name = "gaussian"


class TestGaussianEach(NumberLaws):
    name = "gaussian-each"


class TestGaussianLocal(NumberLaws):
    name = "gaussian-local"
    budgets = ((0.3, 1e-2), (1.0, 1e-3), (3.0, 1e-3))


class TestSampling(NumberLaws):
    name = "sampling"
    budgets = ((0.3, 1e-3), (3.0, 1e-3), (1.0, 0.0))


class TestQuantileResponse(NumberLaws):
    name = "quantile-response"


def test_every_mechanism_is_held_to_the_laws() -> None:
    pending, found = [MechanismLaws], set[tuple[str, bool]]()
    while pending:
        laws = pending.pop()
        pending.extend(laws.__subclasses__())
        if hasattr(laws, "name"):
            found.add((laws.name, issubclass(laws, NumberLaws)))
    numbers = {(one.name, True) for one in MECHANISMS.values() if one.numbers is not None}
    symbols = {(one.name, False) for one in MECHANISMS.values() if one.symbols or one.reports}
    assert found == numbers | symbols
