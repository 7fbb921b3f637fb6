"""A bad chain found by search: a lower bound that is true, beside the upper one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.other_truth import OtherTruth, leakage_under
from sfumato.stream.worst_chain import BadChain
from tests.stream.test_other_truth import a_chain, a_chain_within, a_plan, a_release

SEEDS = st.integers(0, 2**32 - 1)


def sought(plan: sf.Plan, left: list[sf.Event], chains: PlausibleChains) -> tuple[BadChain, float]:
    """The chain that a search finds, and what was leaked over all of them at most."""
    check, state = OtherTruth(plan, chains.estimate, chains, seeks=True), plan.begin("ann")
    for event in left:
        seen = plan.observed(state, [event.released], signal=event.signal)
        check.see(CheckedBatch.of(state, seen))
        state = seen.following
    report = AuditReport()
    check.finish(report)
    assert report.truth is not None and report.truth.bad is not None
    return report.truth.bad, report.truth.streams["ann"].over_set or 0.0


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 3), radius=st.sampled_from([0.01, 0.1]))
def test_what_is_found_is_leaked_and_lies_below_the_bound_for_all(
    seed: int, size: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    model = a_chain(rng, size)
    plan, chains = a_plan(model, 0.5), PlausibleChains.from_radius(model, radius)
    left, _ = a_release(plan, rng, 6)
    found, most = sought(plan, left, chains)
    own = sf.MarkovChain.from_matrix(found.transition, found.initial, model.alphabet)
    assert np.all(own.transition() >= chains.low - 1e-9)
    assert np.all(own.transition() <= chains.high + 1e-9)
    # Another program, the check of one chain, says what it leaked under the chain that was named.
    told = leakage_under({"ann": left}, plan, own).streams["ann"].truth
    assert found.at_least == pytest.approx(told, abs=1e-6) and found.at_least <= told
    assert found.at_least <= most
    for _ in range(5):
        near = a_chain_within(chains, rng)
        mixed = sf.MarkovChain.from_matrix(near.transition(), near.initial, model.alphabet)
        other = leakage_under({"ann": left}, plan, mixed).streams["ann"].truth
        assert other <= found.at_least * 1.02 + 1e-3


def test_a_bit_is_worst_at_a_corner() -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    plan, chains = a_plan(chain, 0.5), PlausibleChains.from_radius(chain, 0.05)
    left, _ = a_release(plan, np.random.default_rng(1), 12)
    found, _ = sought(plan, left, chains)
    best = 0.0
    for first in (0.45, 0.55):
        for stay in (0.85, 0.95):
            for other in (0.85, 0.95):
                rows = [[stay, 1 - stay], [1 - other, other]]
                corner = sf.MarkovChain.from_matrix(rows, [first, 1 - first])
                told = leakage_under({"ann": left}, plan, corner).streams["ann"].truth
                best = max(best, told)
    assert found.at_least >= best - 1e-6


def test_without_a_search_nothing_is_named() -> None:
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    plan, chains = a_plan(chain, 0.5), PlausibleChains.from_radius(chain, 0.05)
    left, _ = a_release(plan, np.random.default_rng(1), 3)
    assert leakage_under({"ann": left}, plan, chain, chains).bad is None
