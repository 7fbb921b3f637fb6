"""Monte Carlo: sets hold the true chain as often as they say, and then no charge is too small."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Ints
from sfumato.core.purpose import Purpose
from sfumato.models.markov import MarkovChain
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version


def ring(size: int, stay: float) -> MarkovChain:
    eye = np.eye(size)
    beside = np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1)
    return MarkovChain.from_matrix(stay * eye + (1 - stay) / 2 * beside, floor=1e-4)


def drawn(chain: MarkovChain, streams: int, length: int, rng: np.random.Generator) -> Ints:
    """True values of streams, a row each."""
    moves, found = chain.transition(), np.empty((streams, length), dtype=np.int64)
    found[:, 0] = rng.choice(chain.size, size=streams, p=chain.initial.ravel())
    for moment in range(1, length):
        for stream in range(streams):
            found[stream, moment] = rng.choice(chain.size, p=moves[found[stream, moment - 1]])
    return found


def versions_of(rules: LearningRules, truth: Ints, rng: np.random.Generator) -> list[ModelVersion]:
    """Versions at doubling counts, from context-free outputs."""
    size, found = len(rules.alphabet), list[ModelVersion]()
    left = np.array([[rng.choice(size, p=rules.channel[x]) for x in row] for row in truth])
    while rules.cut(len(found) + 1) <= truth.size:
        moments = rules.cut(len(found) + 1) // len(truth)
        told = {
            f"u{place}": row[:moments].astype(np.uint8).tobytes() for place, row in enumerate(left)
        }
        found.append(next_version(rules, found, ContextFree(told)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chain", "epsilon", "streams", "length", "draws"),
    [
        (MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]]), 1.5, 60, 40, 40),
        (ring(4, 0.7), 3.0, 60, 40, 20),
        (ring(16, 0.8), 6.0, 200, 60, 4),
    ],
    ids=["sticky bit", "ring of 4", "ring of 16"],
)
def test_sets_hold_the_true_chain_and_no_other_that_is_a_third_off(
    chain: MarkovChain,
    epsilon: float,
    streams: int,
    length: int,
    draws: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"_WALKS": 1, "_LENGTH": 1}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    budget, priced = sf.PerStep(sf.SIP(epsilon)), sf.loss.hamming(chain.alphabet)
    # Nobody moves: the sets of all cuts come from the same streams.
    rules = LearningRules(chain.alphabet, budget, priced, first=streams * length // 4, ready=0.999)
    stays = chain.transition().copy()
    less, more = stays * 0.7, np.minimum(stays * 1.3, 1.0)
    missed, excluded = 0, np.zeros(2)
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        found = versions_of(rules, drawn(chain, streams, length, rng), rng)
        assert len(found) == 3
        sets = [version.chains for version in found]
        missed += any(chains is None or not chains.contains(chain) for chains in sets)
        last = sets[-1]
        if last is None:
            continue
        # The chance to stay, a third too small and, where there is room, too large.
        for side, off in enumerate((less, more)):
            own = np.diag(off)
            excluded[side] += bool(np.any((own < np.diag(last.low)) | (own > np.diag(last.high))))
    # Stated: missed with probability .05 at most; three times that happens by chance at 1e-4.
    assert missed <= 0.05 * draws + 4 * np.sqrt(0.05 * 0.95 * draws)
    assert excluded[0] > 0.9 * draws
    if np.diag(more).max() < 1:
        assert excluded[1] > 0.9 * draws


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_learning_release_never_leaks_more_than_it_says_if_the_truth_is_in_its_sets(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_WALKS": 1, "_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    release = sf.LearningRelease(
        chain.alphabet,
        budget=sf.SIP(2.0),
        loss=sf.loss.hamming(chain.alphabet),
        first=250,
        scouts=6,
        ready=0.0001,
        purpose=Purpose.SIMULATION,
        randomness=sf.seeded(seed),
    )
    rng = np.random.default_rng(seed)
    truth, moves = drawn(chain, 30, 40, rng), chain.transition()
    beliefs = np.repeat(chain.initial.ravel()[None], 30, axis=0)
    told: list[tuple[float, float, int | None]] = []
    for moment in range(40):
        for stream in range(30):
            name = f"u{stream}"
            state = release.states.get(name) or release.plan.begin(name)
            found = release.plan.prepare(state, 1)
            assert found is not None
            rows = found.design.channel.probabilities
            event = release(name, int(truth[stream, moment]))
            mean = beliefs[stream] @ rows
            worst = max((rows.max(axis=0) / mean).max(), (mean / rows.min(axis=0)).max())
            told.append((float(np.log(worst)), event.sip.epsilon, event.signal))
            output = found.output(np.array([event.released]))
            assert output is not None
            belief = beliefs[stream] * found.design.channel.likelihood(output)
            beliefs[stream] = (belief / belief.sum()) @ moves
    sets = [version.chains for version in release.versions]
    assert all(chains is not None and chains.contains(chain) for chains in sets)
    assert max(signal or 0 for _, _, signal in told) >= 2
    assert all(exact <= stated + 1e-12 for exact, stated, _ in told)
