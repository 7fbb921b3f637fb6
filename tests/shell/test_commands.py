import math
import re
from pathlib import Path

import pytest

from sfumato.cli.command_groups import GROUPS
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from tests.shell.releasing import STEP
from tests.shell.running import call, done
from tests.shell.tables import FORMATS, PLACES, table, walk, write

COMMANDS = ("fit", "plan", "release", "audit", "design", "demo")
FIT = ("--stream", "person", "--value", "place")
UNIFORM = ",".join(["0.1"] * 10)


# Help --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_well_and_names_every_option(command: str) -> None:
    result = done(command, "--help")
    assert result.out.startswith(f"Usage: sfumato {command} ")
    assert "--json" in result.out
    assert result.err == ""


@pytest.mark.parametrize("command", ["fit", "plan", "release", "audit", "design"])
def test_help_teaches_by_example(command: str) -> None:
    said = done(command, "--help").out
    assert f"sfumato {command} " in said[said.index("Examples:") :]


def test_the_help_of_all_shows_the_main_job_and_the_exit_codes() -> None:
    for arguments in (("--help",), ()):
        said = call(*arguments)
        for command in COMMANDS:
            assert re.search(rf"^\s+{command}\s+\w", said.out + said.err, re.MULTILINE)
        for step in ("fit history.csv", "plan --model", "release live.csv", "audit private.csv"):
            assert f"sfumato {step}" in said.out + said.err
        assert "Exit codes: 0 done" in said.out + said.err
    assert call("--help").code == 0


@pytest.mark.parametrize(
    "arguments", [("unheard-of",), ("fit",), ("release", "live.csv"), ("plan", "--surprise")]
)
def test_a_wrong_call_ends_with_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = call(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "Usage: sfumato" in result.err


# fit ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_fit_says_what_the_model_rests_on(tmp_path: Path, suffix: str) -> None:
    history = table(tmp_path / f"history.{suffix}", walk(3, rows=300))
    report = done("fit", history, *FIT, "-o", tmp_path / "city.model", "--json").document
    assert list(report) == [
        "model",
        "streams",
        "rows",
        "symbols",
        "transitions",
        "rare",
        "predictability",
        "estimation_error",
        "warnings",
        "patterns",
        "kept",
        "missing",
        "clipped",
        "rounding",
        "unit",
    ]
    assert report["patterns"] is report["kept"] is None
    assert (report["streams"], report["rows"], report["symbols"]) == (3, 300, 4)
    assert report["transitions"] == 300 - 3
    assert report["rare"] == []
    assert [warning.partition(" (")[0] for warning in report["warnings"]] == [
        "only 3 streams show how a stream begins"
    ]
    assert 0.2 < report["predictability"] < 0.8
    assert 0 < report["estimation_error"] < math.log(2)


def test_every_format_gives_the_same_model(tmp_path: Path) -> None:
    found = set()
    for suffix in FORMATS:
        history = table(tmp_path / f"history.{suffix}", walk(3, rows=100))
        done("fit", history, *FIT, "-o", tmp_path / "city.model")
        found.add((tmp_path / "city.model").read_bytes())
    assert len(found) == 1


def test_a_history_may_come_through_a_pipe(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", walk(3, rows=100))
    done("fit", history, *FIT, "-o", tmp_path / "file.model")
    done("fit", "-", *FIT, "-o", tmp_path / "pipe.model", stdin=history.read_bytes())
    assert (tmp_path / "pipe.model").read_bytes() == (tmp_path / "file.model").read_bytes()


def test_a_chain_counts_within_streams_only(tmp_path: Path) -> None:
    # Rows alternate between two streams that never move.
    still = [("a", "home"), ("b", "work")] * 50
    done("fit", table(tmp_path / "still.csv", still), *FIT, "-o", tmp_path / "still.model")
    model = load(tmp_path / "still.model")
    assert isinstance(model, StreamModel)
    assert model.single_values.transition()[0, 0] > 0.95
    assert model.single_values.transition()[1, 1] > 0.95


def test_a_small_history_is_warned_about(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", walk(3, rows=12))
    result = done("fit", history, *FIT, "-o", tmp_path / "city.model")
    assert "warning: the history is small for order 1" in result.err
    single = table(tmp_path / "single.csv", [("a", "home"), ("b", "work")])
    report = done("fit", single, *FIT, "-o", tmp_path / "city.model", "--json").document
    assert report["transitions"] == 0
    assert report["estimation_error"] == "inf"
    assert "the chain knows no transition" in report["warnings"][0]


def test_a_higher_order_needs_a_longer_history(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", walk(3, rows=300))
    errors = [
        done("fit", history, *FIT, "--order", order, "-o", tmp_path / "m", "--json").document
        for order in (1, 2)
    ]
    assert errors[0]["estimation_error"] < errors[1]["estimation_error"]
    model = load(tmp_path / "m")
    assert isinstance(model, StreamModel)
    assert model.single_values.order == 2
    assert model.single_values.transition().shape == (16, 4)
    assert errors[1]["transitions"] == 300 - 6


def test_rare_symbols_are_named(tmp_path: Path) -> None:
    records = [("a", PLACES[i % 2]) for i in range(400)]
    records[100], records[200] = ("a", "lighthouse"), ("a", "cave")
    history = table(tmp_path / "history.csv", records)
    report = done("fit", history, *FIT, "-o", tmp_path / "m", "--json").document
    assert report["rare"] == ["cave", "lighthouse"]
    said = done("fit", history, *FIT, "-o", tmp_path / "m").out
    assert "rare symbols (hardly any in the history): cave, lighthouse" in said


def test_numbers_are_cut_into_bins(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", [("a", i % 9 / 2) for i in range(90)])
    report = done("fit", history, *FIT, "--bins", 4, "-o", tmp_path / "m", "--json").document
    assert report["symbols"] == 4
    model = load(tmp_path / "m")
    assert isinstance(model, StreamModel)
    assert model.chain.alphabet.labels == ("0.5", "1.5", "2.5", "3.5")


def test_points_are_cut_into_a_grid(tmp_path: Path) -> None:
    points = [("a", i % 7, i % 5) for i in range(100)]
    history = write(tmp_path / "history.csv", ["person", "x", "y"], points)
    grid = ("--stream", "person", "--grid", "3x2", "--x", "x", "--y", "y")
    report = done("fit", history, *grid, "-o", tmp_path / "m", "--json").document
    assert (report["symbols"], report["rows"]) == (6, 100)


@pytest.mark.parametrize(
    "options",
    [
        ("--grid", "3x2"),
        ("--grid", "3x2", "--x", "lon"),
        ("--grid", "3", "--x", "lon", "--y", "lat"),
        ("--grid", "ax2", "--x", "lon", "--y", "lat"),
        ("--grid", "0x2", "--x", "lon", "--y", "lat"),
        ("--grid", "3x2", "--x", "lon", "--y", "lat", "--bins", 3),
        ("--x", "lon", "--y", "lat"),
        ("--bins", 0),
        ("--order", 0),
        ("--floor", 0),
        ("--floor", 0.5),
        ("--smoothing", -1),
        ("--smoothing", "nan"),
        ("--stream", "nobody"),
        ("--value", "nothing"),
    ],
)
def test_fit_refuses_what_makes_no_model(tmp_path: Path, options: tuple[object, ...]) -> None:
    records = [("a", i % 3, i % 3, i % 2) for i in range(30)]
    history = write(tmp_path / "history.csv", ["person", "place", "lon", "lat"], records)
    result = call("fit", history, *FIT, *options, "-o", tmp_path / "city.model")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["history.csv"]


@pytest.mark.parametrize(
    ("records", "row"),
    [
        ([("a", "1"), ("", "2")], 2),
        ([("a", "1"), ("a", "2"), ("a", "")], 3),
        ([], None),
    ],
)
def test_fit_names_the_row_that_is_wrong(
    tmp_path: Path, records: list[tuple[str, str]], row: int | None
) -> None:
    history = table(tmp_path / "history.csv", records)
    result = call("fit", history, *FIT, "-o", tmp_path / "city.model")
    assert result.code == 2
    place = history if row is None else f"{history}, row {row}"
    assert result.err.startswith(f"sfumato: {place}: ")
    assert not (tmp_path / "city.model").exists()


@pytest.mark.parametrize("value", ["nan", "inf", "four", ""])
def test_fit_cuts_finite_numbers_only(tmp_path: Path, value: str) -> None:
    history = table(tmp_path / "history.csv", [("a", "1"), ("a", "2"), ("b", value), ("a", "3")])
    result = call("fit", history, *FIT, "--bins", 2, "-o", tmp_path / "city.model")
    assert result.code == 2
    assert result.err.startswith(f"sfumato: {history}, row 3: the value must ")


# plan --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        ("--epsilon", 0.5, *STEP),
        ("--budget", 6, "--horizon", 12),
        ("--budget", 2, "--window", 4),
        ("--budget", 1, "--window", 5000),
    ],
)
def test_plan_compares_the_ways_to_release(models: Path, rule: tuple[object, ...]) -> None:
    found = done("plan", "-m", models / "places.model", *rule, "--steps", 8, "--json").document
    assert (found["streams"], found["length"], found["loss"]) == (12, 8, "hamming")
    names = ["step-wise", "calibrated", "randomized-response", "no privacy", "say nothing"]
    methods = {row["method"]: row for row in found["methods"]}
    assert list(methods) == names
    for row in found["methods"]:
        assert {"method", "loss", "remapped_loss", "sip", "ldp", "constant"} < set(row)
        assert row["total"] == "inf" or row["total"] <= found["total"] * (1 + 1e-9)
    assert methods["step-wise"]["loss"] <= methods["calibrated"]["loss"]
    assert methods["calibrated"]["loss"] <= methods["randomized-response"]["loss"]
    assert methods["step-wise"]["one_value"] <= found["one_value"] <= found["total"]
    assert methods["no privacy"]["sip"] == methods["no privacy"]["ldp"] == "inf"
    assert methods["say nothing"]["sip"] == 0
    for name in names[:3]:
        assert 0 <= methods[name]["constant"] <= 1
        assert methods[name]["remapped_loss"] <= methods[name]["loss"] + 1e-12
        assert methods[name]["sip"] <= methods[name]["ldp"]


def test_more_budget_never_costs_more(models: Path) -> None:
    rule = ("--epsilon", 0.5, *STEP, "--steps", 8, "--loss", "absolute")
    curve = done("plan", "-m", models / "levels.model", *rule, "--json").document["curve"]
    assert [point["epsilon"] for point in curve] == [0.125, 0.25, 0.5, 1.0, 2.0]
    for method in ("step-wise", "randomized-response"):
        losses = [point["losses"][method] for point in curve]
        assert losses == sorted(losses, reverse=True)


def test_plan_draws_the_same_streams_again(models: Path) -> None:
    run = ("plan", "-m", models / "places.model", "--epsilon", 1, *STEP, "--steps", 8)
    assert done(*run).out == done(*run).out
    assert done(*run).out != done(*run, "--seed", 2).out


@pytest.mark.parametrize(("suffix", "mark"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
def test_plan_draws_a_picture(models: Path, tmp_path: Path, suffix: str, mark: bytes) -> None:
    picture = tmp_path / f"loss.{suffix}"
    rule = ("--epsilon", 1, *STEP, "--steps", 2, "--plot", picture)
    done("plan", "-m", models / "places.model", *rule)
    assert picture.read_bytes().startswith(mark)
    assert [path.name for path in tmp_path.iterdir()] == [picture.name]


# design ------------------------------------------------------------------------------------------


def test_design_gives_the_certified_optimum_of_the_errata() -> None:
    run = ("design", "--belief", UNIFORM, "--epsilon", 1, "--loss", "absolute", "--json")
    best = done(*run).document
    assert set(best) == {"method", "cost", "lower_bound", "sip", "ldp", "outputs", "channel"}
    assert best["cost"] == pytest.approx(1.5843, abs=5e-5)
    assert best["lower_bound"] <= best["cost"] <= best["lower_bound"] * (1 + 1e-6)
    assert best["sip"] <= 1
    assert best["ldp"] <= 2
    assert all(sum(row) == pytest.approx(1) for row in best["channel"])
    assert {len(row) for row in best["channel"]} == {len(best["outputs"])}


def test_design_shows_what_the_published_rule_really_leaks() -> None:
    run = ("design", "--belief", UNIFORM, "--epsilon", 1, "--loss", "absolute")
    found = done(*run, "--method", "published", "--json").document
    assert found["cost"] == pytest.approx(1.2140, abs=5e-5)
    assert found["sip"] == pytest.approx(1.900, abs=5e-4)
    said = done(*run, "--method", "published").out
    assert "this rule does NOT keep the budget of 1" in said
    assert "NOT" not in done(*run).out


@pytest.mark.parametrize(
    ("size", "epsilon", "loss", "method", "cost"),
    [
        (10, 1, "absolute", "randomized-response", 2.8161),
        (20, 2, "absolute", "optimal", 1.3816),
        (20, 2, "absolute", "randomized-response", 5.0400),
        (20, 2, "absolute", "published", 0.9000),
        (10, 1, "hamming", "optimal", 0.7282),
        (20, 2, "hamming", "optimal", 0.6305),
        (3, 0.5, "hamming", "optimal", 0.4504),
    ],
)
def test_design_reproduces_the_numbers_of_the_errata(
    size: int, epsilon: float, loss: str, method: str, cost: float
) -> None:
    belief = ",".join([repr(1 / size)] * size)
    rule = ("--epsilon", epsilon, "--loss", loss, "--method", method)
    found = done("design", "--belief", belief, *rule, "--json").document
    assert found["cost"] == pytest.approx(cost, abs=5e-5)


@pytest.mark.parametrize(
    "method", ["optimal", "calibrated", "randomized-response", "context-free", "published"]
)
def test_the_certificates_of_a_design_are_those_of_its_channel(method: str) -> None:
    belief = [0.5, 0.3, 0.2]
    rule = ("--epsilon", 0.7, "--method", method)
    found = done("design", "--belief", "0.5,0.3,0.2", *rule, "--json").document
    columns = list(zip(*found["channel"], strict=True))
    shares = [sum(b * p for b, p in zip(belief, column, strict=True)) for column in columns]
    sip = max(
        abs(math.log(p / share))
        for column, share in zip(columns, shares, strict=True)
        for p in column
    )
    ldp = max(math.log(max(column) / min(column)) for column in columns)
    assert found["sip"] == pytest.approx(sip, rel=1e-9)
    assert found["ldp"] == pytest.approx(ldp, rel=1e-9)
    assert found["method"] == method


def test_a_belief_may_lie_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "belief.txt"
    path.write_text("0.5, 0.3\n0.2\n")
    run = ("--epsilon", 1, "--json")
    assert done("design", "--belief", path, *run) == done("design", "--belief", "0.5,0.3,0.2", *run)


@pytest.mark.parametrize(
    "options",
    [
        ("--belief", "0.5,0.6", "--epsilon", 1),
        ("--belief", "0.5,half", "--epsilon", 1),
        ("--belief", "", "--epsilon", 1),
        ("--belief", "1.5,-0.5", "--epsilon", 1),
        ("--belief", "nan,1", "--epsilon", 1),
        ("--belief", "0.5,0.5", "--epsilon", 0),
        ("--belief", "0.5,0.5", "--epsilon", "nan"),
        ("--belief", "0.5,0.5", "--epsilon", 1, "--method", "magic"),
        ("--belief", "0.5,0.5", "--epsilon", 1, "--loss", "unheard-of"),
        ("--belief", "0.5,0.5", "--epsilon", 1, "--ldp", -1),
        ("--belief", "no-such-file.txt", "--epsilon", 1),
    ],
)
def test_design_refuses_what_is_no_problem(options: tuple[object, ...]) -> None:
    result = call("design", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1


def test_every_command_is_listed_under_what_it_is_for() -> None:
    told = call("--help")
    assert told.code == 0
    assert "Others:" not in told.out
    assert all(f"{title}:" in told.out for title in GROUPS)


@pytest.mark.parametrize(
    ("words", "offered"), [("sfumato rel", "release"), ("sfumato release --ho", "--horizon")]
)
def test_a_shell_can_complete_commands_and_options(
    words: str, offered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SFUMATO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert call().out.split() == [offered]
