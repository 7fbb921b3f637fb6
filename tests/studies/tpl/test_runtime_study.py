"""The study of runtimes with tiny matrices, and verdicts on made-up times."""

from dataclasses import replace

from sfumato.studies.study import Claim, Verdict
from sfumato.studies.tpl.quantification_runtime import (
    RuntimePoint,
    Sizes,
    differences,
    runtime_points,
)
from sfumato.studies.tpl.runtime_study import runtime_claims

TINY = Sizes((3, 5), 5, 4, (1, 10, 500), (0.1, 10.0, 15.0), 2, 2)
SAME = {"1": 1e-14, "HiGHS": 1e-12}


def test_every_panel_has_every_curve_at_every_place() -> None:
    done: list[int] = []
    points = runtime_points(TINY, 1, done.append)
    assert done == list(range(1, TINY.steps + 1))
    places: dict[tuple[str, str], list[float]] = {}
    for point in points:
        assert point.y > 0 and point.error >= 0
        places.setdefault((point.figure, point.curve), []).append(point.x)
    wanted = {"6a": [3, 5], "6b": [3, 5], "6c": [1, 10, 500], "6d": [0.1, 10.0, 15.0]}
    assert all(found == wanted[figure] for (figure, _), found in places.items())
    counts = {figure: sum(where == figure for where, _ in places) for figure in wanted}
    assert counts == {"6a": 5, "6b": 4, "6c": 4, "6d": 5}


def test_all_ways_agree() -> None:
    assert max(differences(1, matrices=5, size=6).values()) < 1e-8


def made(**seconds: float) -> list[RuntimePoint]:
    """Points as the paper has them, but for those that are given."""
    table: dict[str, dict[str, dict[float, float]]] = {
        "6a": {f"Algorithm {n}": {10: 1e-4, 20: 2e-4} for n in (1, 3, 5)},
        "6b": {
            "Algorithm 2": {10: 1.0, 20: 2.0},
            "Algorithm 4, up to 1": {10: 1.0, 20: 2.0},
            "Algorithm 4, up to 10": {10: 2.0, 20: seconds.get("deep", 4.0)},
        },
        "6c": {
            "Algorithm 1": {1: 1.0, 100: 100.0, 1000: 1000.0},
            "Algorithms 2 and 3": {1: 3.0, 100: 10.0, 1000: 90.0},
            "Algorithms 2, 4 and 5": {1: 30.0, 100: 30.0, 1000: seconds.get("long", 30.0)},
            "whole function here": {1: 1.0, 100: 1.0, 1000: 1.0},
        },
        "6d": {
            "Algorithm 1": {0.1: 1.0, 10: 3.0, 15: 3.1},
            "Algorithm 3": {0.1: 1.0, 10: seconds.get("level", 1.1), 15: 1.0},
            "Algorithm 5": {0.1: 1.0, 10: 1.0, 15: 1.0},
            "HiGHS": {0.1: 1.0, 10: 1.0, 15: 1.0},
        },
    }
    return [
        RuntimePoint(figure, curve, x, y, 0.0, y)
        for figure, curves in table.items()
        for curve, line in curves.items()
        for x, y in line.items()
    ]


def claim(points: list[RuntimePoint], words: str, apart: dict[str, float] = SAME) -> Claim:
    (found,) = (one for one in runtime_claims(points, apart) if words in one.claimed)
    return found


def test_verdicts_follow_the_times() -> None:
    assert {one.verdict for one in runtime_claims(made(), SAME)} == {Verdict.AGREES}
    assert claim(made(deep=1.0), "(b)").verdict is Verdict.PARTLY
    assert claim(made(long=900.0), "(c)").verdict is Verdict.PARTLY
    assert claim(made(level=5.0), "(d)").verdict is Verdict.PARTLY
    slow = [replace(p, y=2.0) if p.figure == "6a" else p for p in made()]
    assert claim(slow, "(a)").verdict is Verdict.DIFFERS
    assert claim(made(), "a solver gives", {"1": 1e-3}).verdict is Verdict.DIFFERS
