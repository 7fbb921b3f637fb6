"""The whole story on made-up data: fit, plan, release, audit, recover, and a page with it."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.printed import shown_up
from sfumato.core.randomness import seeded
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.plots import figures
from sfumato.plots.report import write_report
from sfumato.solver.closed_form import paper_response
from sfumato.store.files import save, whole
from sfumato.stream.audit import audit_table
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.fit_model import fit_table
from sfumato.stream.forecast import CurvePoint, curve
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_counts import Population
from sfumato.stream.recovery import Recovery, recover
from sfumato.stream.release_document import document
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.released_tracks import read_tracks
from sfumato.studies.town import PLACES, SLOTS_PER_DAY, alphabet, people
from sfumato.tables.readers import Table

PEOPLE, DAYS = 8, 2
ROWS = PEOPLE * DAYS * SLOTS_PER_DAY
CURVE_LENGTH, CURVE_STREAMS = 40, 4
CURVE_STEPS = 15 * CURVE_LENGTH * CURVE_STREAMS
STEPS = 2 * ROWS + CURVE_STEPS
BUDGET = 48.0
_HISTORY_PEOPLE, _HISTORY_DAYS = 60, 28


def run_demo(
    folder: str | Path, *, seed: int = 7, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Run the demonstration into a folder and return its numbers.

    Args:
        folder: Where data, model, private streams, figures and the report go.
        seed: Of the made-up town; the release itself uses secure coins.
        progress: Called with the number of steps done so far, out of `STEPS`.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    tell = progress or (lambda done: None)
    history = people(_HISTORY_PEOPLE, _HISTORY_DAYS, seed)
    live = people(PEOPLE, DAYS, seed + 1)
    _write(home / "history.csv", history)
    _write(home / "live.csv", live)
    model = _fit(home)
    spec = ReleaseSpec(budget=BUDGET, horizon=DAYS * SLOTS_PER_DAY, loss="euclidean")
    plan = spec.instant(model)
    points = curve(plan, length=CURVE_LENGTH, streams=CURVE_STREAMS, progress=tell)
    source, output = Table.at(str(home / "live.csv")), Table.at(str(home / "private.csv"))
    for old in home.glob("town.ledger*"):
        old.unlink()
    release = release_table(
        source,
        output,
        model,
        plan,
        RunSpec(document=document(spec, model), ledger=home / "town.ledger"),
        progress=lambda done: tell(CURVE_STEPS + done),
    )
    report = audit_table(
        output,
        model,
        plan,
        ledger=home / "town.ledger",
        against=source,
        progress=lambda done: tell(CURVE_STEPS + ROWS + done),
    )
    published_true = published_walk(model.single_values, plan, BUDGET / (DAYS * SLOTS_PER_DAY), 96)
    recovery = recover(read_tracks(output, model), plan)
    counts = _hours(recovery, live)
    pictures = _draw(home, live, recovery, counts, points, published_true)
    summary = _summary(model, points, report, counts, published_true)
    summary |= {
        "rows": release.rows,
        "largest_sip": release.largest_sip,
        "report": str(write_report(home / "report.html", summary["story"], pictures)),
        "figures": [str(path) for path, _ in pictures],
    }
    return summary


def published_walk(chain: MarkovChain, plan: Plan, claimed: float, steps: int) -> list[float]:
    """True leakage of each step when the published rule is followed along a simulated stream."""
    coins = seeded(3)
    path = chain.sample(steps, coins)
    belief = chain.first()
    leakages = []
    assert plan.value_loss is not None
    for place in path:
        rule = paper_response(belief.marginal, plan.value_loss, claimed)
        leakages.append(rule.sip.epsilon)
        output = int(rule.channel.draw([place], coins.words(1))[0])
        belief = chain.following(belief.update(rule.channel.likelihood(output)))
    return leakages


def _fit(home: Path) -> StreamModel:
    fitted, _ = fit_table(
        Table.at(str(home / "history.csv")), stream="person", values=("place",), order=1
    )
    # The map of the town is public: it gives the places their coordinates.
    places = alphabet()
    order = [places.index(label) for label in fitted.chain.alphabet.labels]
    coordinates = np.asarray(places.coordinates)[order]
    located = type(places)(fitted.chain.alphabet.labels, coordinates)
    chain = replace(fitted.single_values, alphabet=located)
    model = replace(fitted, chain=chain, encoding=Symbols(located), unit="km")
    save(model, home / "town.model")
    return model


def _write(path: Path, streams: dict[str, list[str]]) -> None:
    """One row per person and half hour, in order of time, people interleaved."""
    with whole(path) as aside, aside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["person", "place"])
        for moment in zip(*streams.values(), strict=True):
            writer.writerows(zip(streams, moment, strict=True))


def _hours(recovery: Recovery, live: dict[str, list[str]]) -> dict[str, Floats]:
    """How many people are where at each hour of a day, on average over the days."""
    released, size = recovery.released, len(recovery.labels)
    hours = released.moments % SLOTS_PER_DAY // 2
    alphabet_places = recovery.plan.model.alphabet
    truth = np.concatenate([alphabet_places.indices(live[name]) for name in released.streams])
    each = 2.0 * DAYS  # half hours of an hour, over all days
    left, right = (
        np.bincount(hours * size + places, minlength=24 * size).reshape(24, size) / each
        for places in (truth, released.places)
    )
    found = Population(recovery, hours).counts().values / each
    return {"where they were": left, "as released": right, "as recovered": found}


def _draw(
    home: Path,
    live: dict[str, list[str]],
    recovery: Recovery,
    counts: dict[str, Floats],
    points: list[CurvePoint],
    published_true: list[float],
) -> list[tuple[Path, str]]:
    person = next(iter(live))
    with (home / "private.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["person"] == person]
    sip, ldp = ([float(row[name]) for row in rows] for name in ("sip", "ldp"))
    claimed = BUDGET / (DAYS * SLOTS_PER_DAY)
    labels = sorted(PLACES)
    values = recovery.values()
    recovered = [str(recovery.labels[place]) for place in values.guesses[recovery.of(person)]]
    pictures = [
        (
            home / "tracks.png",
            "Two days of one person: where she was, what was released, and what a receiver infers "
            "from everything that was.",
        ),
        (
            home / "counts.png",
            "How many people were where at each hour: in truth, by counting released values, and "
            "recovered by adding up probabilities.",
        ),
        (home / "loss.png", "Distance lost per value against the leakage allowed per step."),
        (home / "leakage.png", "What that person's stream leaked so far, and its budget."),
        (home / "published.png", "The published rule claims a bound that it does not keep."),
    ]
    left = [row["released"] for row in rows]
    figures.tracks(labels, live[person], left, recovered, pictures[0][0])
    figures.counts_by_hour([str(label) for label in recovery.labels], counts, pictures[1][0])
    figures.loss_curve(points, "distance (km)", pictures[2][0])
    figures.leakage_over_time(sip, ldp, BUDGET, pictures[3][0])
    figures.published_leakage(claimed, published_true, pictures[4][0])
    return pictures


def _summary(
    model: StreamModel,
    points: list[CurvePoint],
    report: AuditReport,
    counts: dict[str, Floats],
    published_true: list[float],
) -> dict[str, Any]:
    here = next(point for point in points if point.factor == 1.0)
    ours, rival = here.losses["step-wise"], here.losses["calibrated"]
    claimed = BUDGET / (DAYS * SLOTS_PER_DAY)
    worst = max(entry.sip for entry in report.streams.values())
    truth, *others = counts.values()
    # Who is told nothing expects everybody where the model has people in the long run.
    silent = truth.sum(axis=1, keepdims=True) * model.single_values.stationary()
    released, recovered, unseen = (
        float(np.abs(table - truth).mean()) for table in (*others, silent)
    )
    story = [
        f"fitted {len(model.chain.alphabet)} places from {model.transitions:,} recorded moves",
        f"planned: {ours:.2f} km lost per value at {shown_up(claimed)} nats a step; randomised "
        f"response with the same leakage to the same adversary loses {rival:.2f} km, or "
        f"{here.losses['calibrated, best guess']:.2f} km after the receiver's best guess",
        f"released {report.rows:,} values of {len(report.streams)} people; the stream that leaked "
        f"most leaked {shown_up(worst, 4)} of its {BUDGET:g} nats",
        f"audited from public things alone: {'nothing wrong' if report.passed else 'FAILED'}; "
        f"realised loss {report.mean_loss:.2f} km per value",
        f"recovered what is behind it, also from public things alone: the receiver's best guesses "
        f"lose {report.recovered_loss:.2f} km; counts by hour and place are off by "
        f"{recovered:.2f} people on average, {released:.2f} if released values are counted, "
        f"{unseen:.2f} by the model alone",
        f"the published rule would have claimed {shown_up(claimed)} nats a step and leaked up to "
        f"{shown_up(max(published_true), 3)}",
    ]
    return {
        "story": story,
        "passed": report.passed,
        "mean_loss": report.mean_loss,
        "recovered_loss": report.recovered_loss,
        "counts_off": {"released": released, "recovered": recovered},
        "planned_loss": ours,
        "calibrated_loss": rival,
        "published_claimed": claimed,
        "published_true": max(published_true),
    }
