"""Every way to release a series keeps the laws of all."""

from typing import ClassVar

import numpy as np
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import keyed, secure
from sfumato.core.state import SeriesState
from sfumato.series.filter_banks import seasonal
from sfumato.series.filters import kalman, one_lag, plain
from sfumato.series.realtime import Realtime
from sfumato.series.rivals.delayed_fourier import DelayedFourier
from sfumato.series.rivals.fast import Fast
from sfumato.series.rivals.fourier import Fourier
from sfumato.series.rivals.pegasus import Pegasus
from sfumato.series.rivals.square_root_tree import SquareRootTree
from sfumato.series.rivals.topl import Topl
from sfumato.series.rivals.tops import Tops
from sfumato.series.rivals.tree import BinaryTree, Told
from sfumato.series.rivals.windowed import BudgetAbsorption, BudgetDistribution
from sfumato.series.series_methods import METHODS, AnyMethod
from sfumato.series.series_release import SeriesEvent, SeriesMethod, Unit
from sfumato.series.series_spec import SeriesSpec
from sfumato.series.silence import Silence
from tests.contracts.series_laws import SECRET, SeriesLaws
from tests.oracles.gaussian_curves import allowed_concentration, allowed_squares
from tests.oracles.other_filters import learned_order, model_lag, several_lags
from tests.oracles.other_schedules import sampled
from tests.oracles.processes import Process

PROCESS = Process.first_order(20.0, 0.9, 4.0)


class TestSilence(SeriesLaws):
    method = Silence(20.0)
    huge = None


class TestGaussianBank(SeriesLaws):
    method = Realtime.gaussian(1.0, epsilon=2.0, delta=1e-6, length=24)
    charge_limit = allowed_squares(2.0, 1e-6)


class TestGaussianEvents(TestGaussianBank):
    method = Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, length=24, unit=Unit.EVENT, estimate=seasonal(7)
    )


class TestGaussianOneLag(TestGaussianBank):
    method = Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, length=24, weight=0.4, estimate=one_lag()
    )

    def test_a_moment_without_a_value_passes_or_is_refused(self) -> None:
        """Filters of lags need every measurement: the gap is refused, what came before stands."""
        coins = self.method.own_coins(secure(), None, Purpose.RELEASE)
        _, state = self.method.step(self.method.start(coins), [20.0], coins)
        with pytest.raises(InvalidParameter):
            self.method.step(state, [None], coins)
        events, after = self.method.step(state, [21.0], coins)
        assert events[0].released is not None and after.time == 2


class TestGaussianModelLag(TestGaussianOneLag):
    method = Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, length=24, weight=0.4, estimate=model_lag(PROCESS)
    )


class TestGaussianLags(TestGaussianOneLag):
    method = Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, length=24, estimate=several_lags(PROCESS, 3)
    )


class TestGaussianKalman(TestGaussianBank):
    method = Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, schedule=sampled(24, 3), estimate=kalman(PROCESS)
    )


class TestGaussianLearnedOrder(TestGaussianBank):
    method = Realtime.gaussian(1.0, epsilon=2.0, delta=1e-6, length=24, estimate=learned_order(2))


class TestLaplacePlain(SeriesLaws):
    method = Realtime.laplace(1.0, epsilon=2.0, length=24, estimate=plain())


class TestDiscreteGaussian(SeriesLaws):
    method = Realtime.discrete_gaussian(1.0, epsilon=2.0, delta=1e-6, length=24)
    charge_limit = allowed_concentration(2.0, 1e-6)


class TestBinomial(SeriesLaws):
    method = Realtime.binomial(1.0, epsilon=2.0, delta=1e-6, length=24)
    charge_limit = 24.0  # draws are counted


class TestFast(SeriesLaws):
    method = Fast.at(1.0, 2.0, 24, process_variance=4.0)


class TestFastSampled(SeriesLaws):
    method = Fast.at(1.0, 2.0, 24, process_variance=4.0, samples=8)


class TestFourier(SeriesLaws):
    method = Fourier.at(1.0, 2.0, 24, 3)
    parts: ClassVar[tuple[int, ...]] = (24,)

    def cut(self, stop: int) -> tuple[list[SeriesEvent], SeriesState]:
        """The whole series comes at once."""
        coins = self.method.own_coins(keyed(SECRET), "a", Purpose.RELEASE)
        return self.method.step(self.method.start(coins), self.series, coins)


class TestDelayedFourier(SeriesLaws):
    method = DelayedFourier.at(1.0, 8.0, 24, 5, 2)
    parts = (5, 15, 20)


class TestBudgetDistribution(SeriesLaws):
    method = BudgetDistribution(1.0, 2.0, 4)


class TestBudgetAbsorption(SeriesLaws):
    method = BudgetAbsorption(1.0, 2.0, 4)


class TestBinaryTree(SeriesLaws):
    method = BinaryTree.at(1.0, 2.0, 24)


class TestBinaryTreeSums(SeriesLaws):
    method = BinaryTree.at(1.0, 2.0, 24, Told.SUMS)


class TestSquareRootTree(SeriesLaws):
    method = SquareRootTree.at(1.0, 2.0, 1e-6, 24, 5, Told.SUMS)


class TestPegasus(SeriesLaws):
    method = Pegasus.at(1.0, 2.0)


class TestTops(SeriesLaws):
    method = Tops.at(30.0, 2.0, 10, block=2)
    huge = None  # values beyond the ceiling are taken for it


class TestTopl(SeriesLaws):
    method = Topl.at(30.0, 2.0, 10, points=16)
    huge = None


def test_every_method_is_tried() -> None:
    """A new rival is one file, one line in the registry, and one class here."""
    tried = {type(kind.method) for kind in SeriesLaws.__subclasses__()}
    spec = SeriesSpec(1.0, 4.0, length=24, truth=np.array(SeriesLaws.series))
    made: set[type[AnyMethod]] = {type(entry.make(spec)) for entry in METHODS.values()}
    assert made <= tried
    assert all(issubclass(kind, SeriesMethod) for kind in tried)
