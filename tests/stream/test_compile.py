import math
from typing import Any

import numpy as np
import pytest

from sfumato import SIP, Alphabet, MarkovChain, PerStep, Plan, Policy, compile_policy, loss
from sfumato.core.errors import InvalidParameter
from sfumato.core.state import StreamState
from sfumato.stream.compile import _CHECKED_PART, _default_steps
from sfumato.stream.compile_problem import WALKS as _WALKS
from tests.compiled import CHAINS
from tests.oracles.textbook_lp import textbook_optimum

PAIR = MarkovChain.from_matrix([[0.85, 0.15], [0.3, 0.7]])
RING = CHAINS["dense, order 1"]


def compiled(chain: MarkovChain = PAIR, epsilon: float = 1.0, **options: Any) -> Policy:
    options.setdefault("steps", 200)
    return compile_policy(chain, loss.hamming(chain.alphabet), epsilon, **options)


def test_the_same_seed_makes_the_same_policy() -> None:
    one, two = compiled(RING, seed=5), compiled(RING, seed=5)
    assert one.fingerprint == two.fingerprint
    assert one.report == two.report
    assert compiled(RING, seed=6).fingerprint != one.fingerprint


def test_a_policy_knows_what_it_was_made_for() -> None:
    policy = compiled(RING, 0.8, ldp=1.5, method="context-free", repair_limit=0.3)
    assert policy.chain == RING.fingerprint
    assert policy.loss == loss.hamming(RING.alphabet).fingerprint
    assert (policy.method, policy.epsilon, policy.ldp) == ("context-free", 0.8, 1.5)
    assert policy.repair_limit == 0.3


@pytest.mark.parametrize("method", ["randomized-response", "context-free"])
@pytest.mark.parametrize("ldp", [None, 0.5])
def test_a_method_that_ignores_the_belief_keeps_one_channel(method: str, ldp: float | None) -> None:
    policy = compiled(RING, 1.0, method=method, ldp=ldp)
    assert policy.channels == 1
    # Rounding to 40 bits may cost a hair; mixing gives it back when the channel is used.
    assert policy.tables[1][0] <= (1.0 if ldp is None else 0.5) + 1e-9
    assert policy.report.repair <= 1e-6
    assert policy.report.missed == 0.0


@pytest.mark.parametrize("method", ["calibrated", "published"])
def test_a_method_that_depends_on_each_belief_is_refused(method: str) -> None:
    with pytest.raises(InvalidParameter, match="method must be far-sighted, optimal, rand"):
        compiled(method=method)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"ldp": 0.0},
        {"tolerance": 0.0},
        {"repair_limit": -1.0},
        {"repair_limit": math.nan},
        {"steps": 0},
        {"max_channels": 0},
        {"seed": -1},
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        compiled(**wrong)


def test_a_chain_with_zeros_and_a_loss_of_another_size_are_refused() -> None:
    zeros = MarkovChain.from_matrix([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5])
    with pytest.raises(InvalidParameter, match="give every value some probability"):
        compiled(zeros)
    with pytest.raises(InvalidParameter, match="loss must be one for 2 symbols"):
        compile_policy(PAIR, loss.hamming(Alphabet("abc")), 1.0, steps=32)


@pytest.mark.parametrize("method", ["optimal", "context-free"])
@pytest.mark.parametrize("steps", [1, 200, 333])
def test_progress_is_told_up_to_the_end(method: str, steps: int) -> None:
    told: list[tuple[int, int]] = []
    compiled(method=method, steps=steps, progress=lambda done, due: told.append((done, due)))
    rounds = -(-steps // _WALKS)
    total = rounds + -(-rounds // _CHECKED_PART)
    assert {due for _, due in told} == {total}
    done = [part for part, _ in told]
    assert done == sorted(set(done))
    assert done[-1] == total


def test_no_more_channels_are_kept_than_asked_for() -> None:
    for most in (1, 2, 7):
        assert compiled(RING, max_channels=most, tolerance=1e-6).channels <= most
    assert compiled(RING, max_channels=40, tolerance=1e-6).channels > 7


def test_more_channels_lose_less() -> None:
    few, many = (
        compiled(RING, 1.5, max_channels=most, steps=640, repair_limit=1e9) for most in (1, 64)
    )
    assert few.report.extra_loss > many.report.extra_loss >= 0.0
    assert few.report.repair > many.report.repair >= 0.0


# How much it loses -------------------------------------------------------------------------------


def by_textbook(policy: Policy, chain: MarkovChain, depth: int) -> tuple[float, float]:
    """Extra loss in `depth` steps over all outputs, and the deviation of one walk's part of it.

    Beliefs go by the textbook from the channels that the rule makes public; what is lost is
    compared with the optimum of the linear program as it stands on paper.
    """
    table = loss.hamming(chain.alphabet).matrix
    plan = Plan(chain, PerStep(SIP(policy.epsilon)), loss.hamming(chain.alphabet), policy=policy)
    lost = floor = 0.0
    walks: list[tuple[float, float, float]] = []
    open_ends: list[tuple[StreamState, float, float, float]] = [(plan.begin("s"), 1.0, 0.0, 0.0)]
    for step in range(depth):
        following = []
        for state, chance, paid, due in open_ends:
            belief, prepared = state.belief.marginal, plan.prepare(state)
            assert prepared is not None
            rows, outputs = prepared.design.channel.probabilities, prepared.design.channel.outputs
            now = float((belief[:, None] * rows * table[:, outputs]).sum())
            best = textbook_optimum(belief, table, policy.epsilon)
            assert now >= best - 1e-9
            lost, floor = lost + chance * now, floor + chance * best
            ends = (paid + now, due + best)
            if step == depth - 1:
                walks.append((chance, *ends))
                continue
            for column, output in enumerate(outputs.tolist()):
                _, after = plan.observe(state, [chain.alphabet.labels[output]])
                following.append((after, chance * float(belief @ rows[:, column]), *ends))
        open_ends = following
    extra = lost / floor - 1
    spread = sum(chance * (paid - (1 + extra) * due) ** 2 for chance, paid, due in walks)
    return extra, math.sqrt(spread) / floor


@pytest.mark.parametrize(("epsilon", "most"), [(1.5, 1), (1.5, 3), (0.7, 1)])
def test_the_measured_extra_loss_is_that_of_the_textbook(epsilon: float, most: int) -> None:
    policy = compiled(RING, epsilon, max_channels=most, steps=1024, repair_limit=1e9)
    depth = policy.report.steps // _WALKS
    assert depth == 4
    extra, deviation = by_textbook(policy, RING, depth)
    # 32 walks: five standard errors, and the gap that the solver's floor is below the optimum.
    assert policy.report.extra_loss >= 0.0
    assert abs(policy.report.extra_loss - extra) <= 5 * deviation / math.sqrt(_WALKS) + 1e-6


def test_the_comparison_would_see_a_wrong_report() -> None:
    policy = compiled(RING, 1.5, max_channels=1, steps=1024, repair_limit=1e9)
    extra, deviation = by_textbook(policy, RING, 4)
    assert extra > 5 * deviation / math.sqrt(_WALKS) + 1e-6


def test_steps_at_which_nothing_would_do_are_counted() -> None:
    assert compiled(RING, 1.5, max_channels=1, repair_limit=1e-9).report.missed > 0.5
    assert compiled(RING, 1.5, max_channels=1, repair_limit=1e9).report.missed == 0.0


def test_a_default_length_is_chosen_by_the_size_of_the_alphabet() -> None:
    lengths = [_default_steps(size) for size in (2, 24, 25, 64, 65, 1_000)]
    assert lengths == [16_000, 16_000, 4_000, 4_000, 4_000, 4_000]


def test_a_policy_is_of_use_at_every_order() -> None:
    for name in ("dense, order 2", "sparse, order 3"):
        policy = compiled(CHAINS[name], 1.0)
        assert policy.report.extra_loss < 0.2
        assert np.isfinite(policy.report.repair)
