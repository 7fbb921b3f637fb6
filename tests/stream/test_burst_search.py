"""How a total is best spent: against the exact programme of a bit, and against rivals."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import LDP, SIP, Horizon, MarkovChain, Method, PerStep, Plan, Purpose, Window, loss
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.core.state import StreamState
from sfumato.stream import Bursts, WindowBursts
from sfumato.stream.burst_search import best_bursts, expected_loss, rival_bursts
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.simulated_stream import as_simulation, simulated
from tests.oracles.binary_programme import BinaryProgramme

WRONG = [[0.0, 1.0], [1.0, 0.0]]


def sticky(stay: float, size: int = 2) -> MarkovChain:
    rows = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(rows, stay)
    return MarkovChain.from_matrix(rows)


def plan_of(chain: MarkovChain, budget: Horizon | Window, **options: object) -> Plan:
    return Plan(chain, budget, loss.hamming(chain.alphabet), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stay", "total", "steps"), [(0.95, 3.0, 12), (0.98, 10.0, 20), (0.7, 6.0, 10)]
)
def test_bursts_come_near_the_best_programme_of_a_bit(
    stay: float, total: float, steps: int
) -> None:
    exact = BinaryProgramme([[stay, 1 - stay], [1 - stay, stay]], WRONG, 201, 3)
    best = exact.total(total, steps, levels=20)
    found = best_bursts(plan_of(sticky(stay), Horizon(SIP(total), steps)))
    assert best * 0.97 <= found.best.loss <= best * 1.025
    assert found.best.loss < 0.96 * found.even.loss


@pytest.mark.parametrize("budget", [Bursts(SIP(3.0), 12, None, 4, 1.3), Horizon(SIP(3.0), 12)])
def test_the_expected_loss_is_that_of_simulated_streams(budget: Horizon) -> None:
    plan = as_simulation(plan_of(sticky(0.9, 3), budget))
    expected, _ = expected_loss(plan, 12, paths=400)
    losses = []
    for number, path in enumerate(draw_paths(sticky(0.9, 3), 12, 300, seed=4)):
        steps = simulated(plan, f"stream {number}", path, seeded(2))
        wrong = [float(step.events[0].released != step.places[0]) for step in steps]
        losses.append(np.mean(wrong))
    error = float(np.std(losses)) / np.sqrt(len(losses))
    assert abs(np.mean(losses) - expected) < 4 * error
    assert error < 0.06 * expected


def test_few_histories_stand_for_all_of_them() -> None:
    plan = plan_of(sticky(0.9, 3), Bursts(SIP(4.0), 12, None, 3))
    whole, _ = expected_loss(plan, 12, paths=10**6)
    some = [expected_loss(plan, 12, paths=8, seed=seed)[0] for seed in range(40)]
    assert np.std(some) > 0
    assert abs(np.mean(some) - whole) < 4 * np.std(some) / np.sqrt(len(some))


def stepped_loss(plan: Plan, length: int) -> tuple[float, float]:
    """Every output of every step, by `prepare`, `observe` and `skip` alone."""
    assert plan.value_loss is not None
    matrix, labels = plan.value_loss.matrix, plan.model.alphabet.labels

    def below(state: StreamState, weight: float, left: int) -> NDArray[np.float64]:
        if not left:
            return np.zeros(2)
        belief = state.belief.marginal
        found = None if plan.allowance(state.ledger, 1).pause else plan.prepare(state)
        if found is None or found.design.channel.is_constant:
            means = belief @ matrix
            held = means.min() if state.last is None else means[state.last]
            silent = below(plan.skip(state)[1], weight, left - 1)
            return np.asarray(weight * np.array([means.min(), held]) + silent)
        total = np.zeros(2)
        for output in found.design.channel.outputs.tolist():
            joint = belief * found.design.channel.likelihood(output)
            total += weight * float(joint @ matrix[:, output])
            after = plan.observe(state, [labels[output]])[1]
            total += below(after, weight * float(joint.sum()), left - 1)
        return total

    guessed, held = (below(as_simulation(plan).begin("x"), 1.0, length) / length).tolist()
    return guessed, held


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "budget", [Bursts(SIP(3.0), 7, None, 3, 1.3), WindowBursts(SIP(2.0), 4, None, 2)]
)
def test_a_pause_is_followed_as_the_plan_itself_does(budget: Horizon, order: int) -> None:
    rows = [[0.9, 0.05, 0.05], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    chain = MarkovChain.from_matrix(rows).lifted(order)
    plan = as_simulation(plan_of(chain, budget))
    assert expected_loss(plan, 7, paths=10**6) == pytest.approx(stepped_loss(plan, 7), rel=1e-9)


@pytest.mark.parametrize("budget", [Horizon(SIP(30.0), 300), Window(SIP(6.0), 200)])
def test_hundreds_of_values_take_few_trials(budget: Horizon) -> None:
    said: list[str] = []
    found = best_bursts(plan_of(sticky(0.98), budget), paths=2, told=said.append)
    assert len(said) <= 20
    assert found.best.loss < 0.8 * found.even.loss


def test_one_burst_is_a_channel_and_then_guesses() -> None:
    chain = sticky(0.9)
    found, held = expected_loss(plan_of(chain, Bursts(SIP(1.0), 3, None, 3)), 3)
    # The best channel splits a fair coin into odds of e to either side of it.
    right = 1 - 1 / (2 * np.e) if np.e > 2 else np.e / 2
    sure = [1 - right]
    for _ in range(2):
        sure.append(sure[-1] * 0.9 + (1 - sure[-1]) * 0.1)
    assert found == pytest.approx(np.mean(sure), rel=1e-6)
    assert held == pytest.approx(found)


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("stay", [0.5, 0.8, 0.95])
def test_the_best_is_never_behind_the_even_split_or_the_rival(size: int, stay: float) -> None:
    plan = plan_of(sticky(stay, size), Horizon(SIP(4.0), 10))
    found, (guessed, held) = best_bursts(plan), rival_bursts(plan)
    assert found.best.loss <= found.even.loss
    assert found.best.loss <= min(guessed.loss, held.held) * 1.02
    assert guessed.loss <= held.held + 1e-12


def test_the_same_question_has_the_same_answer() -> None:
    plan = plan_of(sticky(0.9, 4), Horizon(SIP(3.0), 8, LDP(5.0)))
    found = best_bursts(plan, paths=2)
    assert found == best_bursts(plan, paths=2)
    assert found.best.budget.ldp == LDP(5.0)


def test_what_is_recommended_keeps_total_and_cap() -> None:
    window = best_bursts(plan_of(sticky(0.95), Window(SIP(3.0), 6)), paths=8).best
    assert isinstance(window.budget, WindowBursts)
    assert (window.budget.sip, window.budget.width) == (SIP(3.0), 6)
    assert window.first == 1.0
    capped = best_bursts(plan_of(sticky(0.95), Horizon(SIP(3.0), 12)), cap=SIP(0.8), paths=8).best
    assert isinstance(capped.budget, Bursts)
    assert capped.budget.cap == SIP(0.8)


def test_a_search_of_bursts_starts_from_the_total() -> None:
    chain = sticky(0.95)
    plain = best_bursts(plan_of(chain, Horizon(SIP(3.0), 8)), paths=8)
    assert best_bursts(plan_of(chain, Bursts(SIP(3.0), 8, None, 2)), paths=8) == plain


def test_a_stream_of_one_value_has_nothing_to_spread() -> None:
    plan = plan_of(sticky(0.9), Horizon(SIP(3.0), 1))
    assert best_bursts(plan).best.every == 1
    assert rival_bursts(plan)[0].every == 1


def test_only_totals_of_single_values_are_spread() -> None:
    chain = sticky(0.9)
    each = Plan(chain, PerStep(SIP(1.0)), loss.hamming(chain.alphabet), method=Method.OPTIMAL)
    with pytest.raises(InvalidParameter, match="else there is nothing to spread"):
        best_bursts(each)
    pairs = Plan(chain, Horizon(SIP(1.0), 4), loss.hamming(chain.alphabet), 2)
    with pytest.raises(InvalidParameter, match="else there is nothing to spread"):
        best_bursts(pairs)
    with pytest.raises(InvalidParameter, match="release value by value"):
        expected_loss(pairs, 4)


def test_a_real_plan_is_tried_as_a_simulation() -> None:
    plan = plan_of(sticky(0.9), Horizon(SIP(1.0), 4))
    assert plan.purpose is Purpose.RELEASE
    assert expected_loss(plan, 4)[0] > 0
