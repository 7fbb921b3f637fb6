"""`sfumato temporal`: what is told, in which form, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load, save
from sfumato.temporal.over_time import chain_leakage
from tests.oracles import temporal as oracle
from tests.oracles.sequences import told_of_windows
from tests.oracles.temporal import ExactLoss, exact_leakage
from tests.shell.running import Result, call, done, litter
from tests.shell.tables import table, walk

Floats = NDArray[np.float64]

BACKWARD = [[0.8, 0.2], [0.2, 0.8]]
FORWARD = [[0.8, 0.2], [0.1, 0.9]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
LEAKAGE_KEYS = {
    "epsilon",
    "bpl",
    "fpl",
    "tpl",
    "sup_backward",
    "sup_forward",
    "event",
    "user",
}
BUDGET_KEYS = {"constant", "first", "middle", "last"}


def matrix_file(path: Path, rows: Any) -> Path:
    path.write_text("".join(",".join(repr(float(x)) for x in row) + "\n" for row in rows))
    return path


@pytest.fixture
def back(tmp_path: Path) -> Path:
    return matrix_file(tmp_path / "back.csv", BACKWARD)


@pytest.fixture
def forth(tmp_path: Path) -> Path:
    return matrix_file(tmp_path / "forth.csv", FORWARD)


@pytest.fixture
def still(tmp_path: Path) -> Path:
    return matrix_file(tmp_path / "still.csv", IDENTITY)


def temporal(*arguments: object) -> dict[str, Any]:
    """A command that must succeed, and the JSON object that it prints."""
    document = done("temporal", *arguments, "--json").document
    assert "NaN" not in json.dumps(document)
    assert "Infinity" not in json.dumps(document)
    return document


def refused(result: Result, *words: str) -> None:
    """Exit code 2, one line that says what must hold, and nothing on standard output."""
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1
    for word in words:
        assert word in result.err


def exact(name: str, epsilons: list[float]) -> list[float]:
    told = exact_leakage(epsilons, ExactLoss(BACKWARD), ExactLoss(FORWARD))
    return [float(value) for value in told[["bpl", "fpl", "tpl"].index(name)]]


# Help ---------------------------------------------------------------------------------------------


def test_help_teaches_by_example() -> None:
    result = done("temporal", "--help")
    for command in ("leakage", "allocate", "fit", "plot", "release", "audit"):
        assert f"sfumato temporal {command}" in result.out
        own = done("temporal", command, "--help").out
        assert f"sfumato temporal {command}" in own.split("Examples:")[1]
    assert "row = the value that is known" in " ".join(result.out.split())
    assert "temporal" in done("--help").out


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("leakage", ["--epsilon", "--backward", "--model", "--steps", "--window", "--json"]),
        ("allocate", ["--alpha", "--backward", "--forward", "--steps", "--least-noise", "--json"]),
        ("fit", ["--stream", "--value", "--smoothing", "--output", "--json", "--quiet"]),
        ("plot", ["--epsilon", "--backward", "--forward", "--steps", "--output"]),
        ("release", ["--alpha", "--own", "--mechanism", "--ledger", "--resume", "--key-file"]),
        ("audit", ["--plan", "--ledger", "--simulation", "--json"]),
    ],
)
def test_help_names_every_option(command: str, options: list[str]) -> None:
    told = done("temporal", command, "--help").out
    assert [option for option in options if option not in told] == []


# Leakage ------------------------------------------------------------------------------------------


def test_leakage_of_a_constant_budget(back: Path, forth: Path) -> None:
    told = temporal(
        "leakage", "--backward", back, "--forward", forth, "--epsilon", 0.1, "--steps", 8
    )
    assert set(told) == LEAKAGE_KEYS
    assert told["epsilon"] == [0.1] * 8
    for name in ("bpl", "fpl", "tpl"):
        assert told[name] == pytest.approx(exact(name, [0.1] * 8), rel=1e-12)
    assert told["sup_backward"] == pytest.approx(0.2487718349655268, rel=1e-12)
    assert told["sup_forward"] == pytest.approx(0.34324905538530603, rel=1e-12)
    assert told["event"] == max(told["tpl"])
    assert told["user"] == pytest.approx(0.8, rel=1e-12)


def test_leakage_of_budgets_from_a_file_in_rows_or_in_lines(
    tmp_path: Path, back: Path, forth: Path
) -> None:
    epsilons = [0.1, 0.0, 0.3, 0.2]
    wide, tall = tmp_path / "wide.csv", tmp_path / "tall.csv"
    wide.write_text("0.1,0.0,0.3,0.2\n")
    tall.write_text("0.1\n0.0\n0.3\n0.2\n")
    for file in (wide, tall):
        told = temporal("leakage", "--backward", back, "--forward", forth, "--epsilon", file)
        assert told["epsilon"] == epsilons
        assert told["tpl"] == pytest.approx(exact("tpl", epsilons), rel=1e-12)
        assert told["sup_backward"] == pytest.approx(
            oracle.algorithm_6(0.3, oracle.algorithm_2(BACKWARD)), rel=1e-9
        )


def test_a_supremum_that_is_infinite_is_null(still: Path, forth: Path) -> None:
    told = temporal(
        "leakage", "--backward", still, "--forward", forth, "--epsilon", 0.1, "--steps", 3
    )
    assert told["sup_backward"] is None
    assert told["bpl"] == pytest.approx([0.1, 0.2, 0.3], rel=1e-12)
    told = temporal(
        "leakage", "--backward", forth, "--forward", still, "--epsilon", 0.1, "--steps", 3
    )
    assert told["sup_forward"] is None


def test_a_direction_without_a_matrix_adds_nothing(forth: Path) -> None:
    told = temporal("leakage", "--forward", forth, "--epsilon", 0.1, "--steps", 3)
    assert told["bpl"] == [0.1] * 3
    assert told["tpl"] == told["fpl"]
    assert told["sup_backward"] == 0.1


def test_a_window_is_told_when_it_is_asked_for(back: Path, forth: Path) -> None:
    asked = ("leakage", "--backward", back, "--forward", forth, "--epsilon", 0.1, "--steps", 5)
    told = temporal(*asked, "--window", 2)
    assert set(told) == LEAKAGE_KEYS | {"window"}
    before, after = exact("bpl", [0.1] * 5), exact("fpl", [0.1] * 5)
    wanted = max(one + other for one, other in zip(before, after[1:], strict=False))
    assert told["window"] == pytest.approx(wanted, rel=1e-12)
    assert "any 2 moments together" in done("temporal", *asked, "--window", 2).out


def test_leakage_for_people_is_a_table_and_two_sentences(back: Path, still: Path) -> None:
    result = done(
        "temporal", "leakage", "--backward", back, "--forward", still, "--epsilon", 0.1,
        "--steps", 3,
    )  # fmt: skip
    assert "any single moment: " in result.out
    assert "a person's whole stream: 0.3" in result.out
    assert "grows for ever" in result.out
    assert [line.split()[0] for line in result.out.splitlines()[2:5]] == ["1", "2", "3"]


def test_a_fitted_model_is_a_matrix_in_both_directions(model: Path, tmp_path: Path) -> None:
    fitted = load(model)
    assert isinstance(fitted, StreamModel)
    forward = np.asarray(fitted.single_values.transition())
    roots, vectors = np.linalg.eig(forward.T)
    weight = np.real(vectors[:, int(np.argmax(np.real(roots)))])
    weight = weight / weight.sum()
    backward = (weight[:, None] * forward).T / weight[:, None]
    told = temporal(
        "leakage", "--backward", model, "--forward", model, "--epsilon", 0.2, "--steps", 4
    )
    wanted = exact_leakage([0.2] * 4, ExactLoss(backward), ExactLoss(forward))
    for name, values in zip(("bpl", "fpl", "tpl"), wanted, strict=True):
        assert told[name] == pytest.approx([float(value) for value in values], rel=1e-9)
    files = [
        matrix_file(tmp_path / "b.csv", backward),
        matrix_file(tmp_path / "f.csv", forward),
    ]
    same = temporal(
        "leakage", "--backward", files[0], "--forward", files[1], "--epsilon", 0.2, "--steps", 4
    )
    assert same["tpl"] == pytest.approx(told["tpl"], rel=1e-9)


# Budgets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_a_model_of_any_order_leaks_what_the_library_says(tmp_path: Path, order: int) -> None:
    rows = [[0.48, 0.52], [0.05, 0.95], [0.22, 0.78], [0.05, 0.95]][: 2**order]
    chain = MarkovChain.from_matrix(rows)
    save(chain, tmp_path / "some.model")
    (tmp_path / "budgets.csv").write_text("1.1\n1.8\n1.0\n")
    asked = ["leakage", "--model", tmp_path / "some.model", "--window", 2]
    told = temporal(*asked, "--epsilon", tmp_path / "budgets.csv")
    exact = told_of_windows(
        chain.initial, chain.transition(), [oracle.randomised_response(2, e) for e in (1.1, 1.8, 1)]
    )
    assert told["event"] >= max(truth for (_, width), truth in exact.items() if width == 1)
    assert told["window"] >= max(truth for (_, width), truth in exact.items() if width == 2)
    assert told["event"] == chain_leakage(chain, [1.1, 1.8, 1.0]).event.alpha
    if order == 2:
        assert told["event"] == pytest.approx(2.57686, abs=1e-5)
    shown = call("temporal", *asked, "--epsilon", tmp_path / "budgets.csv")
    assert shown.code == 0 and "any 2 moments together" in shown.out


def test_a_model_comes_without_matrices(back: Path, tmp_path: Path) -> None:
    save(MarkovChain.from_matrix([[0.8, 0.2], [0.1, 0.9]]), tmp_path / "some.model")
    asked = ("temporal", "leakage", "--epsilon", 0.1, "--steps", 3)
    refused(call(*asked, "--model", tmp_path / "some.model", "--backward", back), "--model")
    refused(call(*asked, "--model", tmp_path / "none.model"), "--model", "name a file")


def test_budgets_of_fig_8(back: Path, forth: Path) -> None:
    told = temporal("allocate", "--alpha", 1, "--backward", back, "--forward", forth)
    assert set(told) == BUDGET_KEYS
    assert told["constant"] == told["middle"] == pytest.approx(0.20387212304613664, rel=1e-12)
    assert told["first"] == pytest.approx(0.49980623, abs=5e-9)
    assert told["last"] == pytest.approx(0.70406589, abs=5e-9)


@pytest.mark.parametrize("more", [[], ["--published"], ["--least-noise"]])
def test_budgets_of_a_known_number_are_certified(back: Path, forth: Path, more: list[str]) -> None:
    told = temporal(
        "allocate", "--alpha", 1, "--backward", back, "--forward", forth, "--steps", 6, *more
    )
    assert set(told) == BUDGET_KEYS | {"budgets", "variance", "variance_bound"}
    spent = told["budgets"]
    assert max(exact("tpl", spent)) <= 1.0
    assert told["variance"] == pytest.approx(sum(2 / e**2 for e in spent) / 6, rel=1e-12)
    if more == ["--published"]:
        assert spent == pytest.approx(oracle.algorithm_8(BACKWARD, FORWARD, 1.0, 6), rel=1e-9)


def test_least_noise_is_never_more_noise(back: Path, forth: Path) -> None:
    asked = ("allocate", "--alpha", 1, "--backward", back, "--forward", forth, "--steps", 6)
    usual = temporal(*asked)["variance"]
    assert temporal(*asked, "--least-noise")["variance"] <= usual
    assert usual <= temporal(*asked, "--published")["variance"]
    assert temporal(*asked, "--published") == temporal(*asked, "--paper")
    refused(call("temporal", *asked, "--published", "--least-noise"), "--paper")


def test_least_noise_stands_beside_what_nothing_goes_below(tmp_path: Path) -> None:
    sticky = tmp_path / "sticky.csv"
    sticky.write_text("0.9999,0.0001\n0.0001,0.9999\n")
    asked = ("allocate", "--alpha", 1, "--backward", sticky, "--forward", sticky, "--steps", 10)
    told = temporal(*asked, "--least-noise")
    assert 0.99 * told["variance"] <= told["variance_bound"] <= told["variance"] <= 200
    shown = call("temporal", *asked, "--least-noise")
    assert "no budgets that keep alpha have less than: 199." in shown.out


def test_budgets_for_people_are_named(back: Path, forth: Path) -> None:
    asked = ("temporal", "allocate", "--alpha", 1, "--backward", back, "--forward", forth)
    first, *lines = done(*asked).out.splitlines()
    assert first.endswith("no moment leaks more than 1 nats in all:")
    assert [line.split()[0] for line in lines] == ["constant", "first", "middle", "last"]
    assert "budget of each release" in done(*asked, "--steps", 3).out


def test_releases_of_one_secret_share_alpha(still: Path) -> None:
    told = temporal("allocate", "--alpha", 1, "--forward", still, "--steps", 4)
    assert sum(told["budgets"]) <= 1.0
    assert told["budgets"] == pytest.approx([0.25] * 4)


# Fitting ------------------------------------------------------------------------------------------


def test_fit_writes_two_matrices_that_the_other_commands_read(tmp_path: Path) -> None:
    path = walk(3, rows=300, symbols=("x", "y", "z"))
    history = table(tmp_path / "history.csv", path)
    told = temporal(
        "fit", history, "--stream", "person", "--value", "place", "-o", tmp_path / "town"
    )
    files = [tmp_path / "town.backward.csv", tmp_path / "town.forward.csv"]
    assert told == {"files": [str(file) for file in files], "symbols": ["x", "y", "z"]}
    counts, here = np.full((3, 3), 0.5), dict[str, int]()
    for person, place in path:
        now = "xyz".index(place)
        if person in here:
            counts[here[person], now] += 1
        here[person] = now
    for file, table_ in zip(files, (counts.T, counts), strict=True):
        wanted = table_ / table_.sum(axis=1, keepdims=True)
        assert np.loadtxt(file, delimiter=",") == pytest.approx(wanted, rel=1e-14)
    leaked = temporal(
        "leakage", "--backward", files[0], "--forward", files[1], "--epsilon", 0.1, "--steps", 2
    )
    assert leaked["sup_backward"] > 0.1
    assert litter(tmp_path) == []


def test_without_smoothing_values_that_never_met_exclude_each_other(tmp_path: Path) -> None:
    records = [("p", "x"), ("p", "x"), ("p", "y"), ("p", "y"), ("p", "y")]
    history = table(tmp_path / "history.csv", records)
    asked = ("fit", history, "--stream", "person", "--value", "place", "--smoothing", 0, "-o")
    temporal(*asked, tmp_path / "town")
    forward = np.loadtxt(tmp_path / "town.forward.csv", delimiter=",")
    assert forward == pytest.approx(np.array([[0.5, 0.5], [0.0, 1.0]]))
    quiet = done("temporal", *asked, tmp_path / "town", "--quiet")
    assert (quiet.out, quiet.err) == ("", "")


# Pictures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
def test_plot_writes_a_picture(back: Path, tmp_path: Path, suffix: str, magic: bytes) -> None:
    picture = tmp_path / f"leakage.{suffix}"
    result = done(
        "temporal", "plot", "--backward", back, "--epsilon", 0.1, "--steps", 20, "-o", picture
    )
    assert result.out == ""
    assert picture.read_bytes().startswith(magic)
    assert picture.stat().st_size > 5000
    assert litter(tmp_path) == []


# Refusals -----------------------------------------------------------------------------------------

RELEASES = ("--epsilon", "0.1", "--steps", "3")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["--forward", "name a file"]),
        ("0.5,0.5\n", ["--forward", "square"]),
        ("0.5,0.5\n0.25,0.5\n", ["--forward row 1", "sum to 1", "0.75"]),
        ("1.5,-0.5\n0.2,0.8\n", ["--forward", "negative", "-0.5"]),
        ("nan,0.5\n0.2,0.8\n", ["--forward"]),
        ("a,b\n0.2,0.8\n", ["numbers"]),
        ("0.5,0.5\n1\n", ["rows of equal length"]),
        ("", ["rows"]),
    ],
)
@pytest.mark.parametrize("command", ["leakage", "allocate", "plot"])
def test_a_matrix_that_is_none_is_refused_and_nothing_is_written(
    tmp_path: Path, command: str, content: str | None, words: list[str]
) -> None:
    file = tmp_path / "matrix.csv"
    if content is not None:
        file.write_text(content)
    more = {
        "leakage": RELEASES,
        "allocate": ("--alpha", "1"),
        "plot": (*RELEASES, "-o", str(tmp_path / "p.png")),
    }[command]
    refused(call("temporal", command, "--forward", file, *more), *words)
    assert {path.name for path in tmp_path.iterdir()} <= {"matrix.csv"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--epsilon", "-0.1", "--steps", "3"], ["--epsilon", "at least 0", "-0.1"]),
        (["--epsilon", "nan", "--steps", "3"], ["--epsilon"]),
        (["--epsilon", "inf", "--steps", "3"], ["epsilon", "finite"]),
        (["--epsilon", "no-such-file.csv"], ["--epsilon", "a number, or a file", "no-such-file"]),
        (["--epsilon", "0.1"], ["--steps"]),
        (["--epsilon", "0.1", "--steps", "0"], ["--steps", "at least 1"]),
    ],
)
def test_budgets_that_are_none_are_refused(
    back: Path, options: list[str], words: list[str]
) -> None:
    refused(call("temporal", "leakage", "--backward", back, *options), *words)


def test_a_number_of_steps_that_is_not_that_of_the_file_is_refused(
    tmp_path: Path, back: Path
) -> None:
    (tmp_path / "e.csv").write_text("0.1\n0.2\n")
    asked = ("temporal", "leakage", "--backward", back, "--epsilon", tmp_path / "e.csv")
    refused(call(*asked, "--steps", 3), "--steps", "2")


@pytest.mark.parametrize("alpha", ["0", "-1", "nan", "inf"])
def test_an_alpha_that_is_none_is_refused(back: Path, alpha: str) -> None:
    refused(call("temporal", "allocate", "--alpha", alpha, "--backward", back), "alpha", "0")


def test_without_a_matrix_nothing_is_said(tmp_path: Path) -> None:
    refused(call("temporal", "leakage", *RELEASES), "--backward", "--forward")
    refused(call("temporal", "allocate", "--alpha", 1), "--backward", "--forward")
    refused(call("temporal", "plot", *RELEASES, "-o", tmp_path / "p.png"), "--backward")
    assert list(tmp_path.iterdir()) == []


def test_rows_that_share_nothing_are_named(still: Path, forth: Path) -> None:
    result = call("temporal", "allocate", "--alpha", 1, "--backward", forth, "--forward", still)
    refused(result, "forward", "rows 0 and 1", "no common column")


def test_least_noise_needs_a_number_of_steps(back: Path) -> None:
    asked = ("temporal", "allocate", "--alpha", 1, "--backward", back, "--least-noise")
    refused(call(*asked), "--least-noise", "--steps")


@pytest.mark.parametrize("missing", ["--alpha", "--epsilon"])
def test_a_call_without_what_it_needs_ends_with_exit_code_2(back: Path, missing: str) -> None:
    command = "allocate" if missing == "--alpha" else "leakage"
    result = call("temporal", command, "--backward", back)
    assert (result.code, result.out) == (2, "")
    assert missing in result.err


def test_a_table_without_the_column_or_a_folder_that_is_not_there_is_refused(
    tmp_path: Path,
) -> None:
    history = table(tmp_path / "history.csv", [("p", "x"), ("p", "y")])
    asked = ("temporal", "fit", history, "--quiet")
    refused(call(*asked, "--stream", "nope", "--value", "place", "-o", tmp_path / "t"), "nope")
    named = (*asked, "--stream", "person", "--value", "place")
    refused(call(*named, "-o", tmp_path / "no" / "t"), "folder")
    refused(call(*named, "--smoothing", -1, "-o", tmp_path / "t"), "smoothing")
    refused(call("temporal", "fit", tmp_path / "none.csv", "-o", tmp_path / "t"))
    assert [path.name for path in tmp_path.iterdir()] == ["history.csv"]


# Each of these was found broken -------------------------------------------------------------------


def test_a_window_that_does_not_fit_is_refused_before_anything_is_said(back: Path) -> None:
    asked = ("temporal", "leakage", "--backward", back, *RELEASES, "--window", 9)
    refused(call(*asked, "--json"), "at most 3")
    refused(call(*asked), "at most 3")


def test_a_picture_of_an_unknown_kind_is_refused(back: Path, tmp_path: Path) -> None:
    result = call("temporal", "plot", "--backward", back, *RELEASES, "-o", tmp_path / "p.xyz")
    refused(result, "p.xyz")


def test_fit_writes_both_matrices_or_none(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", [("p", "x"), ("p", "y"), ("p", "x")])
    (tmp_path / "town.forward.csv").mkdir()
    asked = ("temporal", "fit", history, "--stream", "person", "--value", "place")
    refused(call(*asked, "-o", tmp_path / "town"), "town.forward.csv")
    assert not (tmp_path / "town.backward.csv").exists()


def test_a_negative_budget_in_a_file_is_named_with_its_value(tmp_path: Path, back: Path) -> None:
    (tmp_path / "e.csv").write_text("0.1\n-0.25\n")
    asked = ("temporal", "leakage", "--backward", back, "--epsilon", tmp_path / "e.csv")
    refused(call(*asked), "epsilon", "-0.25")


def test_the_constant_for_ever_does_not_depend_on_the_number_of_steps(
    back: Path, forth: Path
) -> None:
    asked = ("allocate", "--alpha", 1, "--backward", back, "--forward", forth)
    for steps in (1, 2, 5):
        assert temporal(*asked, "--steps", steps)["constant"] == temporal(*asked)["constant"]


def test_budgets_for_people_are_rounded_down_and_leakages_up(back: Path, forth: Path) -> None:
    both = ("--backward", back, "--forward", forth)
    document = temporal("allocate", "--alpha", 1, *both)
    told = done("temporal", "allocate", "--alpha", 1, *both).out.splitlines()[1:]
    shown = dict(line.split()[:2] for line in told)
    assert {name: float(text) <= document[name] for name, text in shown.items()} == dict.fromkeys(
        BUDGET_KEYS, True
    )
    exact = temporal("leakage", *both, *RELEASES)
    lines = done("temporal", "leakage", *both, *RELEASES).out.splitlines()[2:5]
    for place, line in enumerate(lines):
        cells = [float(cell) for cell in line.split()[2:]]
        assert all(
            cell >= exact[name][place] - 1e-15
            for cell, name in zip(cells, ("bpl", "fpl", "tpl"), strict=True)
        )


def test_a_picture_of_releases_that_leak_nothing_is_drawn(back: Path, tmp_path: Path) -> None:
    picture = tmp_path / "p.png"
    done("temporal", "plot", "--backward", back, "--epsilon", 0, "--steps", 3, "-o", picture)
    assert picture.stat().st_size > 1000
