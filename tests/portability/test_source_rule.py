"""No new code on the way of a release whose last bits depend on the machine."""

import ast

from tests.portability.source_rule import found, uses

_FORECAST = "a forecast: it decides nothing that leaves"
_RECEIVER = "what a receiver infers: it decides nothing that leaves"
_CUBE = "whole powers in a compiled loop: numba multiplies"
_WATCH = "what an audit reports of coins or of composition, not what it verifies"
_NINE = "a quantile or integral of a library, cut to nine digits before use (`portable.settled`)"
_HIGHS = "HiGHS: one binary, no BLAS; its result is certified, and a channel is what is sampled"

ALLOWED: dict[str, tuple[frozenset[str], str]] = {
    "column/column_recovery.py": (frozenset({"@"}), _RECEIVER),
    "column/feature_prior.py": (
        frozenset({"scipy.optimize"}),
        "a scalar search in plain Python; classifiers are the user's own",
    ),
    "column/notion_relations.py": (frozenset({"scipy.optimize"}), _HIGHS),
    "column/privatize.py": (frozenset({"sklearn.utils"}), "tags: no numbers"),
    "core/fair_coins.py": (frozenset({"math.log", "np.exp", "np.log", "np.log1p"}), _WATCH),
    "core/unbiased.py": (frozenset({"@", "np.linalg"}), _RECEIVER),
    "models/pair_chain.py": (frozenset({"@"}), "sparse matrices: scipy's own loops, no BLAS"),
    "noise/number_noise.py": (frozenset({"**"}), "a whole power in a test of whole numbers"),
    "record/attack/bayes_attack.py": (frozenset({"stats.t"}), _NINE),
    "record/attack/chain_bound.py": (frozenset({"sklearn.feature_selection"}), _NINE),
    "record/attack/coupled_attack.py": (frozenset({"stats.norm"}), _NINE),
    "record/attack/held_out.py": (frozenset({"stats.beta"}), _NINE),
    "record/best_round_noise.py": (frozenset({"scipy.optimize"}), _HIGHS),
    "record/coupling/joint_mixture.py": (frozenset({"stats.multivariate_normal"}), _NINE),
    "record/coupling/kernel_density.py": (frozenset({"np.linalg"}), "a rank: yes or no"),
    "record/coupling/polynomial.py": (frozenset({"np.linalg"}), "a rank: yes or no"),
    "record/round_attackers.py": (
        frozenset({"scipy.ndimage"}),
        "running sums in one order; they choose boxes that are weighed again",
    ),
    "record/round_boxes.py": (frozenset({"scipy.interpolate"}), "cubic pieces: products and sums"),
    "record/vector_noise.py": (frozenset({"stats.multivariate_normal"}), _NINE),
    "service/drift_hint.py": (frozenset({"math.erfc"}), "how often a hint is a false alarm"),
    "solver/barrier.py": (frozenset({"**"}), _CUBE),
    "solver/interior_point.py": (frozenset({"**"}), _CUBE),
    "solver/linear_programs.py": (frozenset({"scipy.optimize"}), _HIGHS),
    "stream/coin_bets.py": (
        frozenset({"**", "math.log", "math.log1p", "np.exp", "np.log", "np.log1p", "np.logaddexp"}),
        _WATCH,
    ),
    "stream/coin_loops.py": (frozenset({"**"}), _WATCH),
    "stream/coin_test.py": (frozenset({"math.log"}), _WATCH),
    "stream/composition.py": (frozenset({"scipy.optimize"}), _WATCH),
    "stream/evidence.py": (frozenset({"@"}), _RECEIVER),
    "stream/history_paths.py": (frozenset({"@"}), _FORECAST),
    "stream/price_frontier.py": (frozenset({"@", "np.linalg"}), _FORECAST),
    "stream/recovered_counts.py": (frozenset({"@"}), _RECEIVER),
    "stream/recovered_rows.py": (frozenset({"@"}), _RECEIVER),
    "stream/recovery.py": (frozenset({"@"}), _RECEIVER),
    "stream/release_trials.py": (frozenset({"@"}), _FORECAST),
    "tables/row_order.py": (frozenset({"stats.beta"}), "the level of a warning"),
    "temporal/least_noise.py": (
        frozenset({"optimize.minimize"}),
        "a start for budgets, taken in steps of 2**-20; what leaves is computed from that",
    ),
    "temporal/temporal_loops.py": (
        frozenset({"fastmath"}),
        "sums that sift, with a margin; what passes is summed again in one order",
    ),
}
"""What may stay, and why; an entry that is no longer needed is refused, too."""


def test_what_depends_on_the_machine_stands_on_the_list() -> None:
    new = {
        name: sorted(kinds - ALLOWED.get(name, (frozenset(), ""))[0])
        for name, kinds in found().items()
    }
    assert {name: kinds for name, kinds in new.items() if kinds} == {}, (
        "use sfumato.core.portable (or portable_loops in compiled loops), or say why not in ALLOWED"
    )


def test_the_list_holds_nothing_that_is_gone() -> None:
    there = found()
    gone = {name: kinds - there.get(name, set()) for name, (kinds, _) in ALLOWED.items()}
    assert {name: kinds for name, kinds in gone.items() if kinds} == {}


def test_the_rule_sees_what_it_is_for() -> None:
    text = """
a = b @ c
a @= c
d = np.dot(b, c) + b.dot(c) + np.linalg.solve(b, c) + np.einsum("i,i", b, c)
e = math.exp(1.0) + np.log(b) + special.ndtr(b) + b**3 + 1.5**c
from sklearn.mixture import GaussianMixture
quick = njit(cache=True, fastmath=True)
good = portable.dot(b, c) + portable.exp(1.0) + b**2 + 2.0**-53 + np.sqrt(b) + stats.rankdata(b)
"""
    seen = [name for _, name in sorted(uses(ast.parse(text)))]
    expected = [".dot", "@", "@", "math.exp", "np.dot", "np.einsum", "np.linalg", "np.log"]
    assert sorted(seen) == sorted([*expected, "special.ndtr", "**", "sklearn.mixture", "fastmath"])
