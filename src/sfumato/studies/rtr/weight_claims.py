"""What the paper says of the weights of its rule (Figures 9, 10 and 11, and Section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from sfumato.studies.rtr.point_table import better, curve
from sfumato.studies.rtr.series_points import SeriesPoint
from sfumato.studies.study import Claim, verdict, verdict_of

RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Correlations of the series."""
LEARNT, KNOWN = "published, learnt parameters", "published, known parameters"
NOISE, BANK, KALMAN = "Gaussian noise", "Sfumato", "Kalman filter, known process"
CONSTANT = "constant weight, the best"
THEOREM = "Theorem 6.1 (not the error)"
LINEAR, HONEST = "linear", "non-linear, noise for its true sensitivity"
UNSAFE = "non-linear, noise for weight times sensitivity"


class Privacy(StrEnum):
    """How much noise there is."""

    STRICT = "strict: noise 4 times the series"
    LAX = "lax: noise .3 of the series"


_ALIKE = 1.1
"""Least errors within this factor are called similar."""
_AS_WELL = 1.02


def claims(points: Sequence[SeriesPoint]) -> list[Claim]:
    """All of them."""
    return [
        *_correlation_claims([p for p in points if p.figure == "9"]),
        _learnt_claim([p for p in points if p.figure == "10"]),
        *_falling_claims([p for p in points if p.figure == "11"]),
        _calibration_claim([p for p in points if p.panel == "calibration"]),
    ]


def _line(points: Sequence[SeriesPoint], privacy: str, rho: float) -> list[SeriesPoint]:
    return curve(points, LEARNT, privacy, f"correlation {rho:g}")


def _least(line: Sequence[SeriesPoint]) -> SeriesPoint:
    return min(line, key=lambda point: point.error)


def _first_gain(line: Sequence[SeriesPoint]) -> float:
    """The smallest weight from which on every weight errs less than weight 1."""
    whole = line[-1]
    gains = [point for point in line[:-1] if point.error < whole.error]
    losses = [point.x for point in line[:-1] if point.error >= whole.error]
    above = [point.x for point in gains if not losses or point.x > max(losses)]
    return min(above, default=1.0)


def _correlation_claims(points: Sequence[SeriesPoint]) -> list[Claim]:
    lines = {(p, rho): _line(points, p, rho) for p in Privacy for rho in RHOS}
    least = {key: _least(line) for key, line in lines.items()}
    won = [better(least[key], line[-1]) for key, line in lines.items()]
    told = {
        privacy: ", ".join(f"{least[privacy, rho].error:.3f}" for rho in RHOS)
        for privacy in Privacy
    }
    strict = [least[Privacy.STRICT, rho].error for rho in RHOS]
    lax = [least[Privacy.LAX, rho].error for rho in RHOS]
    gains = {
        privacy: [lines[privacy, rho][-1].error / least[privacy, rho].error for rho in RHOS]
        for privacy in Privacy
    }
    starts = {privacy: [_first_gain(lines[privacy, rho]) for rho in RHOS] for privacy in Privacy}
    quiet = sum(error < 1 for error in strict)
    return [
        Claim(
            "RTR 9",
            "whatever the correlation, some weight errs less than independent noise",
            f"at {sum(won)} of {len(won)} settings; below a constant at {quiet} of {len(strict)} "
            "with strict privacy",
            verdict_of(won),
            "" if quiet == len(strict) else "with strict privacy saying nothing errs less",
        ),
        Claim(
            "RTR 9",
            "the least error falls with the correlation where privacy is strict, and hardly "
            "depends on it where it is lax",
            f"least errors for correlations {RHOS}: strict {told[Privacy.STRICT]}, lax "
            f"{told[Privacy.LAX]}",
            verdict_of([strict == sorted(strict, reverse=True), max(lax) < _ALIKE * min(lax)]),
            "one lag learns little of a correlation that noise hides: erratum 14",
        ),
        Claim(
            "RTR 9",
            "weights that gain reach from near 0 with much to gain (strict), from near 1 with "
            "little (lax)",
            f"gains of {min(gains[Privacy.STRICT]):.1f} to {max(gains[Privacy.STRICT]):.1f} times "
            f"from weight {max(starts[Privacy.STRICT]):.2f} on; "
            f"{min(gains[Privacy.LAX]):.2f} to {max(gains[Privacy.LAX]):.2f} times from "
            f"{min(starts[Privacy.LAX]):.2f} to {max(starts[Privacy.LAX]):.2f} on",
            verdict_of(
                [
                    min(gains[Privacy.STRICT]) > max(gains[Privacy.LAX]),
                    max(starts[Privacy.STRICT]) < min(starts[Privacy.LAX]),
                ]
            ),
        ),
    ]


def _learnt_claim(points: Sequence[SeriesPoint]) -> Claim:
    said, parts = [], list[bool]()
    for privacy in Privacy:
        for rho in (RHOS[2], RHOS[-1]):
            name = f"correlation {rho:g}"
            learnt, known = (_least(curve(points, m, privacy, name)) for m in (LEARNT, KNOWN))
            noise, bank, best = (curve(points, m, privacy, name)[0] for m in (NOISE, BANK, KALMAN))
            parts += [known.error <= learnt.error, better(learnt, noise)]
            said.append(
                f"{privacy.split(':')[0]}, {rho:g}: known {known.error:.3f}, learnt "
                f"{learnt.error:.3f}, noise {noise.error:.3g}; Sfumato {bank.error:.3f}, "
                f"Kalman {best.error:.3f}"
            )
    return Claim(
        "RTR 10",
        "learnt parameters cost something, and the rule still errs less than noise",
        "; ".join(said),
        verdict_of(parts),
    )


def _falling_claims(points: Sequence[SeriesPoint]) -> list[Claim]:
    panels = list(dict.fromkeys(point.panel for point in points))
    starts = [_falling_start([p for p in points if p.panel == panel]) for panel in panels]
    told = ", ".join(
        f"{'none' if start is None else f'{start:g}'} ({panel})"
        for start, panel in zip(starts, panels, strict=True)
    )
    found = [start for start in starts if start is not None]
    rises = len(found) == len(starts) and found == sorted(found)
    useless = [
        min(p.of_silence for p in points if p.panel == panel and p.method == LEARNT) >= 1
        for panel in panels
    ]
    reason = "where noise is large even the best factor errs more than a constant"
    return [
        Claim(
            "RTR 11",
            "at every epsilon there is a factor from which on falling weights err less than noise",
            f"least such factors: {told}",
            verdict_of(start is not None for start in starts),
            reason if any(useless) else "",
        ),
        Claim(
            "RTR 11",
            "that factor rises with epsilon",
            f"least such factors, the most private first: {told}",
            verdict(rises),
        ),
    ]


def _falling_start(points: Sequence[SeriesPoint]) -> float | None:
    """The factor from which on falling weights err less than noise, below 1."""
    noise = curve(points, NOISE)[0].error
    line = [point for point in curve(points, LEARNT) if point.x < 1]
    start = None
    for point in reversed(line):
        if point.error >= noise:
            break
        start = point.x
    return start


def _calibration_claim(points: Sequence[SeriesPoint]) -> Claim:
    linear, honest, unsafe = (_least(curve(points, m)) for m in (LINEAR, HONEST, UNSAFE))
    seen = (
        f"bikes by day, epsilon {linear.epsilon:.3g}: linear {linear.of_silence:.3f}, non-linear "
        f"{honest.of_silence:.3f} of a constant's error; with the noise of the linear rule "
        f"{unsafe.of_silence:.3f}, and an epsilon of {unsafe.epsilon:.3g}"
    )
    good = honest.error <= _AS_WELL * linear.error
    return Claim(
        "RTR Sec. 7",
        "one could as well calibrate by a root of value times estimate",
        seen,
        verdict(good),
        "" if good else "erratum N63: the root has a sensitivity of its own",
    )


def facts(points: Sequence[SeriesPoint]) -> list[str]:
    """What follows from the numbers."""
    ten = [p for p in points if p.figure == "10" and p.series == f"correlation {RHOS[-1]:g}"]
    known = _least(curve(ten, KNOWN, Privacy.STRICT))
    said = min(curve(ten, THEOREM, Privacy.STRICT), key=lambda point: abs(point.x - known.x))
    bank, best = (curve(ten, m, Privacy.STRICT)[0] for m in (BANK, KALMAN))
    return [
        f"Theorem 6.1 says {said.error:.3f} where the rule with known parameters errs "
        f"{known.error:.3f} (weight {known.x:.2f}, correlation {RHOS[-1]:g}, strict); the Kalman "
        f"filter errs {best.error:.3f}, Sfumato, which knows nothing, {bank.error:.3f}",
    ]
