"""What `sfumato attack` says: for a person, for a machine, and as a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isinf
from typing import TYPE_CHECKING, Any

from sfumato.cli.console import print_legend, print_line, say, table
from sfumato.cli.loss_words import WRONG

if TYPE_CHECKING:
    from sfumato.attacks.attack_report import StreamGain
    from sfumato.attacks.reidentification import Accuracy, Reidentification
    from sfumato.attacks.track_attack import TrackAttack, TrackScores

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class PeopleFound:
    """Whose streams are, by each attack on what was released and on true values.

    Attributes:
        found: What was attacked, and by what if not by likelihoods; what was released is first.
        owners: Whose each stream is, if their names say so.
    """

    found: dict[str, Reidentification]
    owners: list[str] | None

    @property
    def blurred(self) -> Reidentification:
        """The exact likelihood of what was released."""
        return self.found["released"]

    def lines(self, top: int) -> list[tuple[str, int, Accuracy]]:
        """What was attacked, how many guesses count, and the accuracy."""
        if self.owners is None:
            return []
        counted = dict.fromkeys((1, min(top, len(self.blurred.people))))
        named = self.found.items()
        return [(what, k, one.accuracy(self.owners, k)) for what, one in named for k in counted]


@dataclass(frozen=True, slots=True)
class AttackFindings:
    """All that an attack found."""

    attack: TrackAttack
    gains: list[StreamGain]
    scores: TrackScores | None
    people: PeopleFound | None
    top: int
    unit: str

    def shares(self) -> list[tuple[str, float, Any]]:
        """Name, expectation and measurement of each share."""
        attack, scores = self.attack, self.scores
        blind = _blind_share(attack)
        kept = attack.ranked.shape[1]
        return [
            ("without outputs", blind, scores.blind if scores else None),
            ("likeliest symbol", attack.expected_first, scores.first if scores else None),
            (f"first {kept} symbols", attack.expected_top, scores.top if scores else None),
        ]

    def document(self) -> dict[str, Any]:
        """All of it for machines."""
        attack, people = self.attack, self.people
        return {
            "rows": len(attack.guesses),
            "streams": len(attack.recovery.released.streams),
            "top": attack.ranked.shape[1],
            "expected": {
                "first": attack.expected_first,
                "top": attack.expected_top,
                "blind": _blind_share(attack),
                "error": attack.expected_error,
                "blind_error": attack.expected_blind_error,
            },
            "unit": self.unit,
            "measured": None if self.scores is None else asdict(self.scores),
            "gains": [
                {
                    "stream": one.stream,
                    "values": one.values,
                    "at_least": one.gain.epsilon,
                    "one_value": one.value_gain,
                    "certified": None if one.certified is None else one.certified.epsilon,
                    "refuted": one.refuted,
                }
                for one in self.gains
            ],
            "people": None
            if people is None
            else {
                "known": len(people.blurred.people),
                "guesses": {
                    stream: list(names)
                    for stream, names in zip(
                        people.blurred.streams, people.blurred.guesses(self.top), strict=True
                    )
                },
                "accuracy": [
                    {
                        "of": what,
                        "top": k,
                        **asdict(found),
                        "leaked": None if found.leaked is None else found.leaked.epsilon,
                    }
                    for what, k, found in people.lines(self.top)
                ],
            },
        }


def _blind_share(attack: TrackAttack) -> float:
    from sfumato.attacks.information_gain import prior_marginals

    rows = prior_marginals(attack.recovery).max(axis=1)
    return float(rows[attack.recovery.released.moments].mean())


def draw(told: AttackFindings, path: str) -> None:
    """All of it in a picture."""
    import numpy as np

    from sfumato.plots.attack_figures import AttackPicture, attacked_tracks

    moments, errors = told.attack.recovery.released.moments, told.attack.errors
    counts = np.maximum(np.bincount(moments), 1)
    gains = [(g.gain.epsilon, g.certified.epsilon) for g in told.gains if g.certified is not None]
    shares = [(name, ex, None if got is None else got.mean) for name, ex, got in told.shares()]
    mean = np.bincount(moments, errors) / counts
    found = [] if told.people is None else told.people.lines(told.top)
    people = [
        (f"{what}, first {k}", one.share, one.low, one.high, one.chance) for what, k, one in found
    ]
    drawn = AttackPicture(shares, mean, told.attack.blind[2], gains, told.unit, people)
    attacked_tracks(drawn, path)


def show_findings(
    told: AttackFindings, *, output: str | None, plot: str | None, quiet: bool
) -> None:
    """All of it for a person."""
    attack, put = told.attack, say if output == "-" else print_line
    if output != "-":
        _print_shares(told, quiet=quiet)
        _print_gains(told, quiet=quiet)
    for one in told.gains:
        if one.refuted:
            put(f"REFUTED stream {one.stream}: {one.gain}; its rows certify {one.certified}")
    if told.people is not None:
        _print_people(told.people, told.top, put)
    if quiet:
        return
    tracks = attack.recovery.released
    say(f"{len(attack.guesses):,} values of {len(tracks.streams):,} streams were attacked")
    for file in (output, plot):
        if file not in (None, "-"):
            say(f"{file}: written")


def _print_shares(told: AttackFindings, *, quiet: bool) -> None:
    attack, scores = told.attack, told.scores
    unit = f" ({_SHARE if told.unit == WRONG else told.unit})" if told.unit else ""
    rows: list[tuple[str, float | None, Any]]
    rows = [(f"right: {name}", expected, got) for name, expected, got in told.shares()]
    blind, error = attack.expected_blind_error, attack.expected_error
    rows.append((f"error{unit}: without outputs", blind, scores.blind_error if scores else None))
    rows.append((f"error{unit}: best guess", error, scores.error if scores else None))
    if scores is not None:
        rows.append(("right: likeliest track", None, scores.track))
    lines = [
        [
            name,
            "" if expected is None else f"{expected:.4g}",
            *([] if got is None else [f"{got.mean:.4g}", _error(got.error)]),
        ]
        for name, expected, got in rows
    ]
    measured = [] if scores is None else ["measured", "+-"]
    table("how well the adversary does", ["guess", "expected", *measured], lines)
    if not quiet:
        print_legend(_SHARES if scores is None else _SHARES | _MEASURED)


_SHARE = "share wrong"
_SHARES = {
    "right": "share of values that he names, from what left: his likeliest one, or among his first "
    "few; without outputs, from the model alone",
    "error": "what his guess loses of a value",
    "expected": "if values move as the model says",
}
_MEASURED = {"measured": "beside the true values", "+-": "twice its standard error over streams"}
_GAINS = {
    "at least": "what he learnt of the whole stream, in nats: a lower bound, since other outputs "
    "may tell more",
    "certified": "what the rows say they leak at most, in nats",
    "one value": "the most that he learnt of a single value, in nats",
}


def _error(error: float) -> str:
    return "" if isinf(error) else f"{2 * error:.2g}"  # of one stream alone nothing is known


def _print_gains(told: AttackFindings, *, quiet: bool) -> None:
    from sfumato.core.printed import shown_down, shown_up

    if not told.gains:
        return
    rows = [
        [
            one.stream,
            f"{one.values:,}",
            shown_down(one.gain.epsilon),
            "" if one.certified is None else shown_up(one.certified.epsilon),
            shown_down(one.value_gain),
        ]
        for one in told.gains[:_SHOWN]
    ]
    columns = ["stream", "values", "at least", "certified", "one value"]
    table("what streams told him (SIP, nats), those that told most", columns, rows)
    if not quiet:
        print_legend(_GAINS)


def _print_people(people: PeopleFound, top: int, put: Callable[[str], None]) -> None:
    known = len(people.blurred.people)
    for what, k, found in people.lines(top):
        put(
            f"whose it is, from {what}: owner among the first {k} of {known:,} in {found.share:.1%}"
            f" of streams ({found.low:.1%} to {found.high:.1%}), by chance {found.chance:.1%}"
        )
        if found.leaked is not None and found.leaked.epsilon > 0 and what.startswith("released"):
            put(f"  for that a stream must have told: {found.leaked}")
    if people.owners is None:
        for stream, names in zip(people.blurred.streams, people.blurred.guesses(top), strict=True):
            put(f"stream {stream} is likeliest {', '.join(names)}")
