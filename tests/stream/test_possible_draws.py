"""What left, held against a key without true values: in plans whose channels change with time."""

from sfumato import SIP, Method, PerStep, Plan, keyed, loss
from sfumato.models.cycle import Cycle
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.possible_draws import PossibleDraws

MATRICES = [
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
    [[0.2, 0.5, 0.3], [0.3, 0.2, 0.5], [0.5, 0.3, 0.2]],
]
MOMENTS = 200


def possible(cycle: Cycle, secret: bytes) -> int:
    """Of the draws of a key that tell something, how many a second key could have made."""
    chain = PeriodicChain.from_matrices(MATRICES, cycle)
    told = loss.hamming(chain.alphabet)
    plan = Plan(chain, PerStep(SIP(0.2)), told, method=Method.RANDOMIZED_RESPONSE)
    check, state = PossibleDraws(plan, keyed(secret)), plan.begin("ann")
    for moment in range(MOMENTS):
        phase = None if cycle.in_turn else moment * moment % 3 % 2
        (event,), after = plan.step(state, [moment % 3], keyed(b"0123456789abcdef"), phase=phase)
        seen = plan.observed(state, [event.released], phase=phase)
        check.see(CheckedBatch.of(state, seen))
        state = after
    return check.rows


def test_a_key_makes_its_own_draws_in_every_phase() -> None:
    for cycle in (Cycle.of("hour", 2), Cycle.of("2")):
        assert possible(cycle, b"0123456789abcdef") == MOMENTS
        assert possible(cycle, b"fedcba9876543210") < 0.9 * MOMENTS
