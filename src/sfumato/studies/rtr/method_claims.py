"""What the paper says of its rule against other methods on one series (Figures 4 and 15)."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.studies.rtr.method_curves import Method, Yardstick
from sfumato.studies.rtr.point_table import curve, wins
from sfumato.studies.rtr.series_points import SeriesPoint
from sfumato.studies.study import Claim, Verdict, verdict, verdict_of

_CLEAR = 0.1
"""Noise in deviations of the series below which all methods are the noise."""
_LIKE = 1.25
"""Errors within this factor are called similar."""


def method_claims(figure: str, points: Sequence[SeriesPoint], name: str) -> list[Claim]:
    """Claims of a figure, judged by the numbers of one series."""
    here = [point for point in points if point.series == name]
    return [
        _over_noise(figure, here, name),
        _over_fast(figure, here, name),
        _more_private(figure, here, name),
        _fourier(figure, here, name),
    ]


def _lines(points: Sequence[SeriesPoint], panel: str, *methods: str) -> list[list[SeriesPoint]]:
    """Curves of a panel where the noise is not negligible, the most private first."""
    lines = [curve(points, method, panel) for method in methods]
    return [[point for point in line if _noisy(points, point)] for line in lines]


def _noisy(points: Sequence[SeriesPoint], point: SeriesPoint) -> bool:
    noise = next(p for p in points if p.method == Method.GAUSSIAN and p.x == point.x)
    return noise.of_silence > _CLEAR


def _over_noise(figure: str, points: Sequence[SeriesPoint], name: str) -> Claim:
    best, noise = _lines(points, Yardstick.SUM, Method.BEST, Method.GAUSSIAN)
    asked, _ = _lines(points, Yardstick.SUM, Method.PAPER, Method.GAUSSIAN)
    won, also = wins(best, noise), wins(asked, noise)
    use = [point.of_silence < 1 for point in best]
    seen = (
        f"{name}: best weight in hindsight below Gaussian noise at {sum(won)} of {len(won)} "
        f"budgets, weight of its theorems at {sum(also)}; below a constant at {sum(use)}"
    )
    reason = "" if all(also) else "without a limit a learnt correlation runs away: erratum N61"
    return Claim(
        figure, "the rule errs less than independent noise", seen, verdict_of(won + also), reason
    )


def _over_fast(figure: str, points: Sequence[SeriesPoint], name: str) -> Claim:
    said, parts = list[str](), list[bool]()
    for yardstick in Yardstick:
        best, fast = _lines(points, yardstick, Method.BEST, Method.FAST)
        won = wins(best, fast)
        said.append(f"{sum(won)} of {len(won)} ({yardstick})")
        parts += won if yardstick is Yardstick.VARIANCE else []
    bank, fast = _lines(points, Yardstick.VARIANCE, Method.BANK, Method.FAST)
    ours = wins(bank, fast)
    seen = (
        f"{name}: below FAST at {', '.join(said)}; Sfumato at {sum(ours)} of {len(ours)} at equal "
        "variance"
    )
    reason = (
        ""
        if all(parts)
        else "FAST, its walk tuned in hindsight, filters all that was measured, the rule one lag"
    )
    return Claim(
        figure, "at equal variance the rule errs less than FAST", seen, verdict_of(parts), reason
    )


def _more_private(figure: str, points: Sequence[SeriesPoint], name: str) -> Claim:
    best, fast = _lines(points, Yardstick.VARIANCE, Method.BEST, Method.FAST)
    gains = [other.error / one.error for one, other in zip(best, fast, strict=True)]
    seen = f"{name}: FAST errs {gains[0]:.2f} times as much at the least epsilon, {gains[-1]:.2f} "
    seen += "at the largest"
    found = gains[0] > 1 and gains[0] > gains[-1]
    reason = "" if found else "where noise is large one lag is not enough: erratum 14"
    claimed = "the gain over FAST grows with the privacy"
    return Claim(figure, claimed, seen, verdict(found), reason)


def _fourier(figure: str, points: Sequence[SeriesPoint], name: str) -> Claim:
    best, whole = _lines(points, Yardstick.VARIANCE, Method.BEST, Method.FOURIER)
    _, fair = _lines(points, Yardstick.EXACT, Method.BEST, Method.FOURIER)
    ahead = sum(wins(whole, best)) > len(best) / 2
    near = best[0].error / whole[0].error < _LIKE
    seen = (
        f"{name}: Fourier errs less at {sum(wins(whole, best))} of {len(best)}; at the least "
        f"epsilon the rule errs {best[0].error / whole[0].error:.2f} times as much, and "
        f"{best[0].error / fair[0].error:.2f} times at the same epsilon and delta"
    )
    reason = (
        f"at equal variance Fourier has a pure budget of {whole[0].epsilon:.2g} where the rule has "
        f"{best[0].epsilon:.2g}: erratum N62"
    )
    claimed = "Fourier, which needs all values, errs less in general; with much noise the two meet"
    found = verdict_of([ahead, near])
    return Claim(figure, claimed, seen, found, "" if found is Verdict.AGREES else reason)
