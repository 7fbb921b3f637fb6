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


def laws(kind: type[MechanismLaws], name: str, **own: Any) -> type[MechanismLaws]:
    """The laws of a kind of column for one mechanism."""
    return type(f"{kind.__name__} of {name}", (kind,), {"name": name, **own})


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


TestOptimal = laws(SymbolLaws, "optimal")


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


TestCalibrated = laws(SymbolLaws, "calibrated")
TestContextFree = laws(SymbolLaws, "context-free")


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


TestRandomizedResponse = laws(SymbolLaws, "randomized-response")
TestUnaryEncoding = laws(SymbolLaws, "unary-encoding")
TestSubsetSelection = laws(SymbolLaws, "subset-selection")
TestOptimalNumbers = laws(NumberLaws, "optimal")
TestLaplace = laws(NumberLaws, "laplace")
TestLaplaceEach = laws(NumberLaws, "laplace-each")
TestLaplaceLocal = laws(NumberLaws, "laplace-local")
TestGaussian = laws(NumberLaws, "gaussian")
TestGaussianEach = laws(NumberLaws, "gaussian-each")
TestGaussianLocal = laws(
    NumberLaws, "gaussian-local", budgets=((0.3, 1e-2), (1.0, 1e-3), (3.0, 1e-3))
)
TestSampling = laws(NumberLaws, "sampling", budgets=((0.3, 1e-3), (3.0, 1e-3), (1.0, 0.0)))
TestQuantileResponse = laws(NumberLaws, "quantile-response")


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
