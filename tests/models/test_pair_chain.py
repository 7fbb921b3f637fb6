"""A chain over the pairs that occur, against hidden states listed one by one."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sfumato.core.alphabet import Alphabet
from sfumato.core.budgets import PerStep
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.fit_model import fit_table
from sfumato.stream.plan import Plan
from sfumato.tables.readers import Table

State = tuple[int, ...]
"""A value alone, or the value before it and the value."""


def moves(chain: PairChain, state: State) -> dict[State, float]:
    """The next states by the definition in the module, in plain Python."""
    single = chain.single
    known, rows = sparse.csr_array(single.known).toarray(), chain.rows.toarray()
    places = {pair: k for k, pair in enumerate(zip(*np.nonzero(known), strict=True))}
    here, found = state[-1], dict.fromkeys(all_states(chain), 0.0)
    forgets = 1.0 if len(state) == 1 else float(chain.forgets[places[state]])
    rest = 1 - chain.reset
    for y in range(chain.size):
        far = chain.reset + rest * forgets * single.backoff[here]
        found[(y,)] += far * single.background[y]
        if known[here, y]:
            found[here, y] += rest * forgets * (1 - single.backoff[here]) * known[here, y]
        if len(state) == 2 and rows[places[state], y]:
            found[here, y] += rest * (1 - forgets) * rows[places[state], y]
    return found


def all_states(chain: PairChain) -> list[State]:
    known = sparse.csr_array(chain.single.known).toarray()
    pairs = sorted(zip(*np.nonzero(known), strict=True), key=lambda pair: (pair[1], pair[0]))
    listed: list[State] = []
    for symbol in range(chain.size):
        listed += [(symbol,), *((int(w), int(x)) for w, x in pairs if x == symbol)]
    return listed


def joint_of_values(chain: PairChain, length: int) -> dict[tuple[int, ...], float]:
    """Probability of every sequence of values, summed over hidden states."""
    paths: dict[tuple[tuple[int, ...], State], float] = {
        ((x,), (x,)): float(chain.single.initial[x]) for x in range(chain.size)
    }
    for _ in range(length - 1):
        longer: dict[tuple[tuple[int, ...], State], float] = {}
        for (values, state), mass in paths.items():
            for following, share in moves(chain, state).items():
                key = ((*values, following[-1]), following)
                longer[key] = longer.get(key, 0.0) + mass * share
        paths = longer
    total: dict[tuple[int, ...], float] = {}
    for (values, _), mass in paths.items():
        total[values] = total.get(values, 0.0) + mass
    return total


@st.composite
def chains(draw: st.DrawFn) -> PairChain:
    size = draw(st.integers(2, 4))
    paths = draw(
        st.lists(
            st.lists(st.integers(0, size - 1), min_size=1, max_size=12), min_size=1, max_size=4
        )
    )
    return PairChain.fit(
        paths,
        alphabet=Alphabet.of_size(size),
        smoothing=draw(st.sampled_from([0.0, 0.5, 3.0])),
        floor=draw(st.sampled_from([1e-9, 1e-3])),
    )


@given(chains(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_a_belief_is_carried_as_the_definition_says(chain: PairChain, seed: int) -> None:
    rng, states = np.random.default_rng(seed), all_states(chain)
    belief = chain.first()
    assert belief.joint.size == len(states)
    for _ in range(3):
        belief = belief.update(rng.random(chain.size) + 1e-3)
        expected = np.zeros(len(states))
        for state, mass in zip(states, belief.joint, strict=True):
            for place, share in enumerate(moves(chain, state).values()):
                expected[place] += mass * share
        belief = chain.following(belief)
        assert belief.joint == pytest.approx(expected / expected.sum(), rel=1e-12)
        assert belief.marginal.min() >= chain.floor * (1 - 1e-9)


@given(chains())
@settings(max_examples=30)
def test_entropies_are_those_of_the_next_value(chain: PairChain) -> None:
    known = sparse.csr_array(chain.single.known).toarray()
    for pair, found in zip(zip(*np.nonzero(known), strict=True), chain.entropies(), strict=True):
        masses = np.zeros(chain.size)
        for state, share in moves(chain, (int(pair[0]), int(pair[1]))).items():
            masses[state[-1]] += share
        assert masses.sum() == pytest.approx(1.0)
        assert found == pytest.approx(-(masses * np.log(masses)).sum(), abs=1e-9)


@given(chains(), st.floats(0.2, 1.5))
@settings(max_examples=15, deadline=None)
def test_the_leakage_of_every_output_sequence_is_within_what_was_charged(
    chain: PairChain, epsilon: float
) -> None:
    """Brute force over the joint table: all true sequences, all outputs of three steps."""
    plan = Plan(chain, PerStep(SIP(epsilon)), hamming(chain.alphabet))
    joint = joint_of_values(chain, 3)
    assert sum(joint.values()) == pytest.approx(1.0)
    for outputs in itertools.product(range(chain.size), repeat=3):
        likelihood, state = dict.fromkeys(joint, 1.0), plan.begin("u")
        for moment, output in enumerate(outputs):
            prepared = plan.prepare(state)
            assert prepared is not None
            design = prepared.design
            if output not in design.channel.outputs:
                break
            column = design.channel.likelihood(output)
            likelihood = {x: told * column[x[moment]] for x, told in likelihood.items()}
            _, state = plan.observe(state, [chain.alphabet.labels[output]])
        else:
            whole = sum(joint[x] * likelihood[x] for x in joint)
            ratios = [abs(math.log(told / whole)) for told in likelihood.values()]
            assert max(ratios) <= state.ledger.sip + 1e-12


def test_what_the_pair_tells_is_used() -> None:
    """0 1 is followed by 2, and 2 1 by 0: one value back tells nothing of that."""
    paths = [[0, 1, 2, 1] * 50]
    pairs = PairChain.fit(paths, alphabet=Alphabet.of_size(3))
    single = MarkovChain.fit(paths, alphabet=Alphabet.of_size(3))
    belief = pairs.first()
    for value in (0, 1):
        told = np.zeros(3)
        told[value] = 1.0
        belief = pairs.following(belief.update(told))
    assert belief.marginal[2] > 0.9
    assert single.row(1)[2] < 0.6


def test_samples_follow_the_joint_table() -> None:
    chain = PairChain.fit([[0, 1, 1, 0, 1, 0, 0, 1]], alphabet=Alphabet.of_size(2))
    joint = joint_of_values(chain, 3)
    coins, seen = seeded(5), dict.fromkeys(joint, 0)
    for _ in range(1500):
        seen[tuple(chain.sample(3, coins).tolist())] += 1
    for values, mass in joint.items():
        assert abs(seen[values] - 1500 * mass) < 5 * math.sqrt(1500 * mass) + 3


def test_chain_and_state_survive_storage() -> None:
    chain = PairChain.fit([[0, 1, 2, 1, 0, 2, 2]])
    back = from_bytes(to_bytes(chain), PairChain)
    assert back.fingerprint == chain.fingerprint
    plan = Plan(back, PerStep(SIP(1.0)), hamming(back.alphabet), purpose=Purpose.SIMULATION)
    _, state = plan.step(plan.begin("u"), [1], seeded(1))
    kept = from_bytes(to_bytes(state), StreamState)
    assert kept.belief.marginal.tolist() == state.belief.marginal.tolist()
    (event,), _ = plan.step(kept, [2], seeded(2))
    assert event == plan.step(state, [2], seeded(2))[0][0]


def test_a_stored_state_whose_runs_are_broken_is_refused() -> None:
    chain = PairChain.fit([[0, 1, 2, 1, 0, 2, 2]])
    state = Plan(chain, PerStep(SIP(1.0)), hamming(chain.alphabet)).begin("u")
    object.__setattr__(state.belief, "runs", np.array([0, 5, 3, 10]))
    with pytest.raises(CorruptData, match="rising order"):
        from_bytes(to_bytes(state), StreamState)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"forgets": [0.5]}, "forgets must be"),
        ({"reset": 0.0}, "reset must lie"),
        ({"rows": sparse.csr_array(np.full((4, 3), 0.5))}, "rows must be nowhere negative"),
        ({"rows": sparse.csr_array(np.ones((2, 3)))}, "rows must have shape"),
    ],
)
def test_what_is_no_chain_is_refused(change: dict[str, Any], rule: str) -> None:
    chain = PairChain.fit([[0, 1, 0, 2] * 5])
    parts = {
        "single": chain.single,
        "rows": chain.rows,
        "forgets": chain.forgets,
        "reset": chain.reset,
    }
    with pytest.raises(InvalidParameter, match=rule):
        PairChain(**(parts | change))


def test_order_two_on_many_cells_is_fitted_to_the_pairs_that_occur(tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    steps = rng.integers(-1, 2, 6000).cumsum() % 2500
    lines = [f"u{k // 2000},{cell}" for k, cell in enumerate(steps)]
    everywhere = [f"all,{cell}" for cell in range(2500)]
    table = tmp_path / "history.csv"
    table.write_text("\n".join(["user,cell", *lines, *everywhere]))
    model, report = fit_table(Table.at(str(table)), stream="user", values=("cell",), order=2)
    chain = model.chain
    assert isinstance(chain, PairChain)
    assert chain.size == 2500
    assert chain.pairs < 9000
    assert chain.first().joint.size == chain.pairs + chain.size
    assert 0 < report.predictability < 1
    with pytest.raises(InvalidParameter, match="be a chain of order 1 for this"):
        _ = model.single_values
