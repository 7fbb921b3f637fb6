"""What every mechanism for a column keeps: each is asked for by its name, through `privatize`.

Leakage is computed by brute force, in fractions, from the integers that were really sampled; an
oracle knows nothing of how they came about.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar
from unittest import mock

import mpmath
import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.column.column_certificate import Privatized
from sfumato.core.channel import Channel
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.response_channel import ResponseChannel
from sfumato.noise.frequency import KaryResponse, Reporting
from tests.oracles.report_tables import table

WHOLE = 2**62
DRAWS = 9_000
"""Enough to tell a budget from one that is 30 % off, for every mechanism."""
Kernel = dict[Any, list[Fraction]]
"""Probability of each output, for every true value."""

KEY = sf.keyed(b"0123456789abcdef")
_FITTED: dict[tuple[type, float, float, str], sf.Privatizer] = {}


@contextmanager
def watched() -> Iterator[list[Any]]:
    """Whatever is sampled meanwhile: channels, or mechanisms that report."""
    seen: list[Any] = []
    draw, respond, report = Channel.draw, ResponseChannel.draw, Reporting.report

    def noted_draw(self: Channel, *arguments: Any) -> Any:
        seen.append(self)
        return draw(self, *arguments)

    def noted_response(self: ResponseChannel, *arguments: Any) -> Any:
        seen.append(self)
        return respond(self, *arguments)

    def noted_report(self: Reporting, *arguments: Any) -> Any:
        seen.append(self)
        return report(self, *arguments)

    with (
        mock.patch.object(Channel, "draw", noted_draw),
        mock.patch.object(ResponseChannel, "draw", noted_response),
        mock.patch.object(Reporting, "report", noted_report),
    ):
        yield seen


def excess(p: Sequence[Fraction], q: Sequence[Fraction], factor: Fraction) -> Fraction:
    """The least delta with p(S) <= factor q(S) + delta for every set of outputs."""
    return sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def power(level: float) -> Fraction:
    """Just above e^level."""
    with mpmath.workprec(300):
        return Fraction(int(mpmath.floor(mpmath.exp(mpmath.mpf(level)) * 2**150)) + 1, 2**150)


class MechanismLaws(ABC):
    """The laws. A subclass names a mechanism, and says of what it is asked."""

    name: ClassVar[str]
    budgets: ClassVar[tuple[tuple[float, float], ...]] = ((0.05, 0.0), (1.0, 0.0), (4.0, 0.0))
    """Pairs of epsilon and delta."""
    changes: ClassVar[bool] = True
    """Whether another epsilon makes another kernel."""

    @property
    @abstractmethod
    def values(self) -> list[Any]:
        """The possible values."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """What goes with the mechanism, a prior that is given among it."""

    @abstractmethod
    def priors(self) -> list[list[float]]:
        """Those under each of which the promise holds; the first is that of expected losses."""

    @abstractmethod
    def loss(self, true: Any, output: Any) -> float:
        """What an output costs."""

    # How it is asked ------------------------------------------------------------------------------

    def fitted(self, epsilon: float, delta: float, **more: Any) -> sf.Privatizer:
        """The mechanism, with keyed coins unless others are given; made once for all laws."""
        asked = self.options() | {"epsilon": epsilon, "delta": delta, "mechanism": self.name}
        asked |= {"order": "kept", "randomness": KEY} | more
        place = type(self), epsilon, delta, str(more)
        if place not in _FITTED:
            _FITTED[place] = sf.Privatizer("x", **asked).fit({"x": self.values})
        return _FITTED[place]

    def sampled(self, budget: tuple[float, float]) -> tuple[Privatized, Kernel]:
        """A release, and the probabilities it was drawn with."""
        with watched() as seen:
            done = self.fitted(*budget).release({"x": self.values})
        return done, self.kernel(seen[0])

    def kernel(self, drawn: Any) -> Kernel:
        """From what was sampled, by definition."""
        if isinstance(drawn, Channel):
            columns = zip(*drawn.weights.tolist(), strict=True)
            outputs = [self.values[place] for place in drawn.outputs]
            pairs = zip(outputs, columns, strict=True)
            return {output: [Fraction(w, WHOLE) for w in column] for output, column in pairs}
        single, found = isinstance(drawn, KaryResponse), {}
        for bits, row in table(drawn).items():
            chosen = [value for value, bit in zip(self.values, bits, strict=True) if bit]
            cell = chosen[0] if single else json.dumps(chosen, separators=(",", ":"))
            found[cell] = row
        return found

    # The laws -------------------------------------------------------------------------------------

    def test_every_row_of_the_kernel_sums_to_one(self) -> None:
        for budget in self.budgets:
            kernel = self.sampled(budget)[1]
            sums = [sum(column) for column in zip(*kernel.values(), strict=True)]
            assert sums == [1] * len(self.values)

    def test_both_leakages_are_within_the_certificate_and_the_certificate_is_tight(self) -> None:
        for budget in self.budgets:
            done, kernel = self.sampled(budget)
            lip, ldp = done.certificate.lip, done.certificate.ldp
            assert lip <= sf.LIP(*budget)
            # A hair more, for the logarithm of a ratio is none of an integer.
            told, free = self.deltas(kernel, lip.epsilon + 1e-12, ldp.epsilon + 1e-12)
            assert told <= lip.delta
            assert free <= ldp.delta
            assert lip.delta in (0.0, budget[1])
            if lip.epsilon > 1e-9:
                told, free = self.deltas(kernel, 0.999 * lip.epsilon, 0.999 * ldp.epsilon)
                assert told > lip.delta
                assert free > ldp.delta

    def deltas(self, kernel: Kernel, lip: float, ldp: float) -> tuple[Fraction, Fraction]:
        """What a kernel needs at two levels: under its priors, and whatever the prior."""
        rows = list(zip(*kernel.values(), strict=True))
        factor, free = power(lip), power(ldp)
        told = Fraction(0)
        for prior in self.priors():
            share = [Fraction(float(mass)) for mass in prior]
            columns = kernel.values()
            mean = [
                sum((b * a for b, a in zip(share, c, strict=True)), Fraction(0)) / sum(share)
                for c in columns
            ]
            worst = (max(excess(row, mean, factor), excess(mean, row, factor)) for row in rows)
            told = max(told, *worst)
        pairs = [excess(p, q, free) for p in rows for q in rows]
        return told, max(pairs)

    def test_cost_and_silence_are_those_of_the_kernel(self) -> None:
        done, kernel = self.sampled(self.budgets[1])
        prior = np.array(self.priors()[0])
        constants = [
            float(prior @ [self.loss(true, output) for true in self.values])
            for output in self.values
        ]
        assert done.certificate.silence == pytest.approx(min(constants), abs=1e-9)
        if done.certificate.cost is not None:
            rows = [
                prior[place] * float(row[place]) * self.loss(true, output)
                for output, row in kernel.items()
                for place, true in enumerate(self.values)
            ]
            assert done.certificate.cost == pytest.approx(math.fsum(rows), abs=1e-9)

    @pytest.mark.statistical
    def test_what_leaves_follows_the_kernel_and_that_of_no_other_budget(self) -> None:
        epsilon, delta = self.budgets[1]
        true = np.random.default_rng(3).integers(len(self.values), size=DRAWS)
        coins = {"randomness": sf.seeded(7), "purpose": sf.Purpose.SIMULATION}
        done = self.fitted(epsilon, delta, **coins).release({"x": [self.values[p] for p in true]})
        cells = np.array(done.frame["x"])
        assert done.certificate.purpose is sf.Purpose.SIMULATION

        def fits(level: float) -> bool:
            kernel = self.sampled((level, delta))[1]
            statistic, freedom = 0.0, 0
            for place in range(len(self.values)):
                own = cells[true == place]
                shares = {output: float(row[place]) for output, row in kernel.items()}
                counted = np.array([np.count_nonzero(own == output) for output in shares])
                wanted = own.size * np.array(list(shares.values()))
                if counted.sum() != own.size:  # of outputs that this kernel does not have
                    return False
                likely = wanted > 0
                misses = (counted - wanted)[likely] ** 2 / wanted[likely]
                statistic += math.inf if counted[~likely].any() else float(misses.sum())
                freedom += int(likely.sum()) - 1
            return bool(stats.chi2.sf(statistic, freedom) > 1e-4)

        assert fits(epsilon)
        if self.changes:
            assert not fits(1.3 * epsilon)
            assert not fits(0.7 * epsilon)

    def test_a_refusal_draws_nothing(self) -> None:
        wrong: list[dict[str, Any]] = [{"epsilon": 0.0}, {"epsilon": math.nan}, {"delta": -0.1}]
        for options in wrong:
            with watched() as seen, pytest.raises(InvalidParameter):
                self.fitted(
                    **dict(zip(("epsilon", "delta"), self.budgets[1], strict=True)) | options
                )
            assert seen == []
        # Coins that can be guessed are for simulations.
        made = self.fitted(*self.budgets[1], randomness=sf.seeded(7))
        with watched() as seen, pytest.raises(InsecureRandomness):
            made.release({"x": self.values})
        assert seen == []

    def test_a_key_brings_the_same_answers_again_and_another_plan_or_purpose_others(self) -> None:
        many, (epsilon, delta) = {"x": self.values * 40}, self.budgets[1]
        made = self.fitted(epsilon, delta)
        first, again = made.release(many), made.release(many)
        assert first.frame == again.frame
        assert first.certificate == again.certificate
        equal = [str(cell) for cell in first.frame["x"][:: len(self.values)]]
        assert len(set(equal)) > 1  # each row has coins of its own
        others = (
            self.fitted(epsilon * (1 + 1e-9), delta),
            self.fitted(epsilon, delta, purpose=sf.Purpose.SIMULATION),
        )
        for other in others:
            assert other.release(many).frame != first.frame

    def test_the_certificate_is_the_same_whatever_is_true(self) -> None:
        made = self.fitted(*self.budgets[1])
        found = [made.release({"x": [value] * 6}).certificate for value in self.values[::3]]
        # Frequencies are a function of what is released.
        assert len({str(replace(one, frequencies=None)) for one in found}) == 1
