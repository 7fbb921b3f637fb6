"""Verdicts on Figure 2 of MDDP follow the numbers, whichever they are."""

import pytest

from sfumato.plots.points import Point
from sfumato.studies.mddp.mddp_claims import claims
from sfumato.studies.mddp.mddp_people import simulated_people
from sfumato.studies.mddp.tied_columns import JOINT_SHAPES, TIED_SHAPES
from sfumato.studies.study import Verdict

AS_CLAIMED = {
    ("2a", "γ"): 0.5,
    ("2a", "γ without correlation"): 0.1,
    ("2a", "on the equation, best attacker"): 0.5,
    ("2a", "bound of Thm. 3"): 0.9,
    **{("2b", f"{shape}, γ"): 0.3 for shape in TIED_SHAPES},
    **{("2b", f"{shape}, best attacker"): 0.3 for shape in TIED_SHAPES},
    ("2b", "uniform, γ"): 0.2,
    ("2b", "uniform, best attacker"): 0.2,
    ("2c", "bound of Thm. 4"): 0.2,
    ("2c", "best attacker"): 0.1,
    **{("2d", f"{shape}, best attacker"): 0.2 for shape in JOINT_SHAPES},
    ("2d", "ball, best attacker"): 0.1,
    ("2d", "ball, without correlation"): 0.1,
}


def verdicts(changed: dict[tuple[str, str], float], *, real: bool = False) -> list[Verdict]:
    points = [Point(*key, 1.0, y) for key, y in (AS_CLAIMED | changed).items()]
    people = simulated_people(count=2_000)
    return [claim.verdict for claim in claims(people, points, real=real)]


def test_numbers_as_the_paper_has_them_agree() -> None:
    assert verdicts({}) == [Verdict.AGREES] * 8


@pytest.mark.parametrize(
    ("place", "changed"),
    [
        (0, {("2a", "γ without correlation"): 0.6}),
        (1, {("2a", "on the equation, best attacker"): 0.2}),
        (2, {("2a", "bound of Thm. 3"): 0.4}),
        (3, {("2b", "gaussian, γ"): 0.1}),
        (4, {("2b", "gaussian, best attacker"): 0.1}),
        (5, {("2c", "best attacker"): 0.3}),
        (6, {("2d", "ball, without correlation"): 0.05}),
        (7, {("2d", "gaussian, best attacker"): 0.05}),
    ],
)
def test_each_verdict_flips_with_its_own_numbers(
    place: int, changed: dict[tuple[str, str], float]
) -> None:
    found = verdicts(changed)
    assert found[place] is Verdict.DIFFERS
    assert found.count(Verdict.DIFFERS) == 1


def test_the_table_itself_is_judged_only_if_it_was_read() -> None:
    assert len(verdicts({}, real=True)) == len(verdicts({})) + 1
    # 2,000 made-up men are not 10,000, and their correlation is off by chance.
    assert verdicts({}, real=True)[0] is Verdict.DIFFERS
