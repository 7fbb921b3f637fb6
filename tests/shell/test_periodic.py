"""`fit --period`: habits by the hour, released, audited from the times that left, and refused."""

import csv
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.state import StreamState
from sfumato.models.periodic import PeriodicChain
from sfumato.models.stream_model import StreamModel
from sfumato.stream.plan import Plan
from tests.shell.releasing import refused
from tests.shell.running import call, done, rows

COLUMNS = ("--stream", "user", "--value", "place")
BY_HOUR = (*COLUMNS, "--time", "when", "--period", "hour", "--phases", 4)
TIMES = ("--time", "when", "--keep", "when")
RULE = ("--epsilon", 1, "--method", "step-wise", *TIMES)


def habits(seed: int, users: int, days: int) -> Iterator[str]:
    """People who are at home at night and mostly out by day, at times of their own."""
    rng = np.random.default_rng(seed)
    yield "user,when,place"
    for user in range(users):
        now = datetime(2024, 5, 1) + timedelta(minutes=int(rng.integers(600)))
        place = "home"
        while now < datetime(2024, 5, 1) + timedelta(days=days):
            out = 8 <= now.hour < 18
            if rng.random() < 0.7:
                away = rng.random() < (0.9 if out else 0.1)
                place = str(rng.choice(["work", "park"])) if away else "home"
            yield f"u{user},{now.isoformat()},{place}"
            now += timedelta(minutes=int(rng.integers(60, 300)))


def table_of(path: Path, seed: int, users: int, days: int) -> Path:
    path.write_text("\n".join(habits(seed, users, days)) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history, a model of it, live rows, and what was released of them."""
    home = tmp_path_factory.mktemp("periodic")
    history = table_of(home / "history.csv", 1, 40, 6)
    table_of(home / "live.csv", 2, 4, 2)
    done("fit", history, *BY_HOUR, "-o", home / "day.model")
    done("release", home / "live.csv", "-m", home / "day.model", *RULE, "-o", home / "out.csv")
    return home


def test_a_model_with_phases_says_what_it_assumes(folder: Path) -> None:
    kept = sf.load(folder / "day.model")
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, PeriodicChain)
    told = done("explain", folder / "day.model").out
    assert "4 of 24 phases (hour)" in told and "--time COLUMN --keep COLUMN" in told
    assert "Phases are taken for public" in told


def test_habits_show_in_the_model(folder: Path) -> None:
    kept = sf.load(folder / "day.model")
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, PeriodicChain)
    home = kept.alphabet.index("home")
    staying = [kept.chain.at(phase).row(home)[home] for phase in range(4)]
    assert staying[0] > 0.85 and staying[2] < 0.5


def test_what_left_is_audited_from_its_times(folder: Path) -> None:
    told = done("audit", folder / "out.csv", "-m", folder / "day.model")
    assert "nothing wrong" in told.out
    assert "whether times (column 'when') depend on the values" in told.out
    against = ("--against", folder / "live.csv")
    assert "look like fair draws" in done("audit", folder / "out.csv", "-m", folder / "day.model",
                                          *against).out  # fmt: skip
    rules = json.loads((folder / "out.csv.plan.json").read_text())
    assert rules["time"] == "when" and rules["keep"] == ["when"]


def test_a_release_says_what_is_not_certified(folder: Path, tmp_path: Path) -> None:
    told = done("release", folder / "live.csv", "-m", folder / "day.model", *RULE,
                "-o", tmp_path / "out.csv").err  # fmt: skip
    assert "not certified: whether times (column 'when') depend on the values" in told


def copied(folder: Path, to: Path, changed: dict[str, str] | None, row: int = 5) -> Path:
    """The released table with one cell changed, beside rules that seal nothing."""
    found = rows(folder / "out.csv")
    found[row] |= changed or {}
    with to.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
    rules = json.loads((folder / "out.csv.plan.json").read_text())
    del rules["sealed"]
    to.with_name(to.name + ".plan.json").write_text(json.dumps(rules))
    return to


def test_an_hour_that_was_changed_is_found(folder: Path, tmp_path: Path) -> None:
    asked = ("-m", folder / "day.model", "--allow", "unsealed")
    same = copied(folder, tmp_path / "same.csv", None)
    done("audit", same, *asked)
    when = rows(folder / "out.csv")[5]["when"]
    later = datetime.fromisoformat(when) + timedelta(hours=6)
    for place, moved in enumerate((later.isoformat(), "", "soon", "8", f"{when}+00:00")):
        file = copied(folder, tmp_path / f"{place}.csv", {"when": moved})
        assert call("audit", file, *asked).code == 1


def test_a_release_that_takes_the_phase_before_is_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Plan.phase

    def late(plan: Plan, state: StreamState, phase: int | None) -> int:
        due = right(plan, state, phase)
        assert due is not None
        return (due - 1) % 4

    with monkeypatch.context() as planted:
        planted.setattr(Plan, "phase", late)
        asked = ("-m", folder / "day.model", *RULE)
        done("release", folder / "live.csv", *asked, "-o", tmp_path / "out.csv")
    told = call("audit", tmp_path / "out.csv", "-m", folder / "day.model")
    assert told.code == 1 and "sip must be" in told.out + told.err


def test_a_stream_goes_on_from_day_to_day_by_its_ledger(folder: Path, tmp_path: Path) -> None:
    lines = list(habits(2, 4, 2))
    days = [tmp_path / "one.csv", tmp_path / "two.csv"]
    days[0].write_text("\n".join([lines[0], *(one for one in lines if "-01T" in one)]) + "\n")
    days[1].write_text("\n".join([lines[0], *(one for one in lines if "-02T" in one)]) + "\n")
    ledger = ("--ledger", tmp_path / "all.ledger")
    model = ("-m", folder / "day.model")
    left = [path.with_suffix(".out.csv") for path in days]
    for source, output in zip(days, left, strict=True):
        done("release", source, *model, *RULE, *ledger, "-o", output)
    done("audit", *left, *model, *ledger)
    done("audit", left[1], *model, *ledger)
    # The ledger tells the phases of rows that no file holds.
    done("audit", *model, *ledger)
    # A retry has its old answer.
    done("release", days[1], *model, *RULE, *ledger, "-o", tmp_path / "again.csv")
    assert rows(tmp_path / "again.csv") == rows(left[1])


def test_keyed_draws_are_repeated_in_their_phases(folder: Path, tmp_path: Path) -> None:
    done("key", "new", tmp_path / "secret.key")
    key = ("--key-file", tmp_path / "secret.key")
    model, output = ("-m", folder / "day.model"), tmp_path / "out.csv"
    done("release", folder / "live.csv", *model, *RULE, *key, "-o", output)
    done("audit", output, *model, *key, "--against", folder / "live.csv")


def test_moments_without_values_pass_in_their_phase(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "live.csv").read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    gappy, output = tmp_path / "gappy.csv", tmp_path / "out.csv"
    gappy.write_text("\n".join(lines) + "\n")
    model = ("-m", folder / "day.model")
    done("release", gappy, *model, *RULE, "--missing", "skip", "-o", output)
    done("audit", output, *model)
    assert rows(output)[2]["outcome"] == "skipped"


def test_randomised_response_and_totals_know_phases(folder: Path, tmp_path: Path) -> None:
    model = ("-m", folder / "day.model", *TIMES)
    for place, rule in enumerate(
        (
            ("--epsilon", 1, "--method", "randomized-response"),
            ("--budget", 6, "--horizon", 60),
            ("--budget", 6, "--window", 10, "--every", 5),
            ("--epsilon", 1),
        )
    ):
        output = tmp_path / f"{place}.csv"
        done("release", folder / "live.csv", *model, *rule, "-o", output)
        done("audit", output, "-m", folder / "day.model")


def test_values_in_turn_need_no_times(tmp_path: Path) -> None:
    lines = ["user,place", *(f"u{k % 3},{'ab'[k // 3 % 4 // 2]}" for k in range(240))]
    source, model = tmp_path / "table.csv", tmp_path / "turn.model"
    source.write_text("\n".join(lines) + "\n")
    done("fit", source, *COLUMNS, "--period", 4, "-o", model)
    kept = sf.load(model)
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, PeriodicChain)
    # Streams go a, a, b, b: only the phase tells when the next letter is due.
    assert min(kept.chain.at(1).row(0)[0], kept.chain.at(2).row(0)[1]) > 0.9
    output = tmp_path / "out.csv"
    done("release", source, "-m", model, "--epsilon", 1, "-o", output)
    done("audit", output, "-m", model)
    assert "time" not in json.loads((tmp_path / "out.csv.plan.json").read_text())


def test_a_missing_value_in_turn_has_its_phase_and_cannot_be_left_out(tmp_path: Path) -> None:
    lines = ["user,place", *(f"u,{'aabb'[k % 4]}" for k in range(80))]
    source, model, output = tmp_path / "table.csv", tmp_path / "m", tmp_path / "out.csv"
    source.write_text("\n".join(lines) + "\n")
    done("fit", source, *COLUMNS, "--period", 4, "-o", model)
    source.write_text("\n".join([*lines[:5], "u,", *lines[6:9]]) + "\n")
    asked = (source, "-m", model, "--epsilon", 1, "--missing")
    assert "phases in turn" in refused(*asked, "drop", output=output)
    done("release", *asked, "skip", "-o", output)
    assert [row["outcome"] for row in rows(output)][3:6] == ["released", "skipped", "released"]


# Refusals -----------------------------------------------------------------------------------------


def test_times_that_are_missing_unreadable_or_go_back_are_refused(
    folder: Path, tmp_path: Path
) -> None:
    lines = (folder / "live.csv").read_text().splitlines()
    user, when, place = lines[4].split(",")
    earlier = (datetime.fromisoformat(when) - timedelta(days=3)).isoformat()
    source, output = tmp_path / "bad.csv", tmp_path / "out.csv"
    for time, rule in (
        ("", "must not be empty"),
        ("noon", "must be a number or a time"),
        ("12", "be a date or a moment"),
        ("2024-06-30", "must say the hour"),
        (f"{when}+02:00", "have no zone"),
        (earlier, "before"),
    ):
        source.write_text("\n".join([*lines[:4], f"{user},{time},{place}", *lines[5:]]) + "\n")
        told = refused(source, "-m", folder / "day.model", *RULE, output=output)
        assert rule in told and "row 4" in told


def test_a_release_without_times_is_refused(folder: Path, tmp_path: Path) -> None:
    asked = (folder / "live.csv", "-m", folder / "day.model", "--epsilon", 1)
    output = tmp_path / "out.csv"
    assert "--time" in refused(*asked, output=output)
    assert "--keep" in refused(*asked, "--time", "when", output=output)
    assert "--late" in refused(*asked, *TIMES, "--late", "accept", output=output)
    far = (*asked, *TIMES, "--method", "far-sighted")
    assert "without --period" in refused(*far, output=output)
    assert "without --period" in refused(*asked, *TIMES, "--batch", 2, output=output)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        (("--period", "hour"), "--time must name the column"),
        (("--time", "when"), "--time must come with --period"),
        (("--phases", 4), "--phases must come with --period"),
        (("--period", "48", "--time", "when"), "--time must not come with a number"),
        (("--period", "hour", "--time", "when", "--order", 2), "--order must not come"),
        (("--period", "hour", "--time", "when", "--batch", 3), "--batch must not come"),
        (("--period", "hour", "--time", "when", "--phases", 5), "phases must cut"),
        (("--period", "fortnight", "--time", "when"), "period must be a number"),
        (
            ("--period", "4", "--private", 1, "--values", "home,work,park"),
            "not come with --private",
        ),
    ],
)
def test_a_fit_refuses_what_does_not_go_together(
    folder: Path, tmp_path: Path, more: tuple[object, ...], rule: str
) -> None:
    told = call("fit", folder / "history.csv", *COLUMNS, *more, "-o", tmp_path / "x.model")
    assert told.code == 2 and not (tmp_path / "x.model").exists()
    assert rule in told.err


def test_a_model_without_a_history_has_no_phases(tmp_path: Path) -> None:
    asked = ("--uniform", "--values", "home,work", "--period", 4, "-o", tmp_path / "x.model")
    told = call("fit", *COLUMNS, *asked)
    assert told.code == 2 and "--period must not come with --uniform" in told.err


def test_a_history_whose_times_go_back_is_refused(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "history.csv").read_text().splitlines()
    lines[2], lines[3] = lines[3], lines[2]
    (tmp_path / "back.csv").write_text("\n".join(lines) + "\n")
    told = call("fit", tmp_path / "back.csv", *BY_HOUR, "-o", tmp_path / "x.model")
    assert told.code == 2 and "row 3" in told.err and "before" in told.err


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--epsilon", 1),
        ("compile", "--epsilon", 1),
        ("learn", "out.csv", "-o", "x.model"),
        ("attack", "out.csv"),
        ("serve", "--home", "home", "--epsilon", 1),
    ],
)
def test_commands_that_know_no_phases_say_so(
    folder: Path, tmp_path: Path, command: tuple[object, ...]
) -> None:
    named = [
        folder / str(word) if word == "out.csv" else tmp_path / str(word)
        if str(word) in ("x.csv", "x.model", "home") else word
        for word in command
    ]  # fmt: skip
    told = call(*named, "-m", folder / "day.model")
    assert told.code == 2 and "change with time" in told.err


def test_what_left_is_recovered_from_its_times(folder: Path, tmp_path: Path) -> None:
    """With given coins: guesses may be the worse by chance."""
    many, model = table_of(tmp_path / "live.csv", 2, 40, 2), folder / "day.model"
    done("release", many, "-m", model, *RULE, "--seed", 1, "-o", tmp_path / "out.csv")
    asked = ("-m", model, "--flows", tmp_path / "flows.csv")
    done("recover", tmp_path / "out.csv", *asked, "-o", tmp_path / "guesses.csv")
    guesses, live = rows(tmp_path / "guesses.csv"), rows(many)
    assert len(guesses) == len(live)
    plain = ("fit", folder / "history.csv", *COLUMNS, "-o", tmp_path / "plain.model")
    done(*plain)
    wrong = sum(g["recovered"] != row["place"] for g, row in zip(guesses, live, strict=True))
    released = sum(g["released"] != row["place"] for g, row in zip(guesses, live, strict=True))
    assert wrong <= released
    told = call("recover", folder / "out.csv", "-m", tmp_path / "plain.model", "-o", "-")
    assert told.code == 2  # the plan is that of another model


def test_no_set_is_put_around_hours(folder: Path) -> None:
    told = call("audit", folder / "out.csv", "-m", folder / "day.model", "--radius", 0.1)
    assert told.code == 2 and "sets around hours" in told.err


def test_another_truth_may_be_a_chain_without_phases(folder: Path, tmp_path: Path) -> None:
    done("fit", folder / "history.csv", *COLUMNS, "-o", tmp_path / "plain.model")
    told = done("audit", folder / "out.csv", "-m", folder / "day.model",
                "--truth", tmp_path / "plain.model")  # fmt: skip
    assert "nothing wrong" in told.out


def test_a_release_by_the_hour_says_whether_it_beats_silence(folder: Path, tmp_path: Path) -> None:
    given = ("release", folder / "live.csv", "-m", folder / "day.model", *TIMES)
    told = done(*given, "--epsilon", 2, "--json", "-o", tmp_path / "much.csv").document
    assert told["expected_loss"] < told["silent_loss"]
    kept = sf.load(folder / "day.model")
    assert isinstance(kept, StreamModel) and isinstance(kept.chain, PeriodicChain)
    assert told["silent_loss"] == pytest.approx(silently(kept.chain, rows(folder / "live.csv")))
    said = done(*given, "--epsilon", 2, "-o", tmp_path / "again.csv").err
    assert (
        f"a constant would be wrong in {100 * told['silent_loss']:.4g} % of the values" in said
        and "better than silence" in said
    )
    said = done(*given, "--epsilon", 1e-6, "-o", tmp_path / "little.csv").err
    assert "AS GOOD AS SILENT, OR WORSE: under the model" in said


def silently(chain: PeriodicChain, live: list[dict[str, str]]) -> float:
    """What the likeliest value loses at each moment, by plain matrices, from the hours alone."""
    beliefs: dict[str, Any] = {}
    lost = 0.0
    for row in live:
        phase = datetime.fromisoformat(row["when"]).hour // 6
        belief = beliefs.get(row["user"])
        rows_of = chain.at(phase)
        now = chain.initial[phase] if belief is None else belief @ rows_of.transition()
        beliefs[row["user"]] = now
        lost += 1 - now.max()
    return lost / len(live)
