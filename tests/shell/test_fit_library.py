"""`sfumato fit --batch`: a library of patterns, and what can and cannot be done with it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sfumato.models.library import PatternLibrary
from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from tests.shell.running import Result, call, done, rows
from tests.shell.tables import PLACES, by_stream, table, walk, write

HISTORY = walk(21, rows=600)
LIVE = walk(22, rows=40)
FIT = ("--stream", "person", "--value", "place")
LIBRARY = ("--batch", 3, "--patterns", 40)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A library of 40 patterns of three places, and the report of its fit."""
    folder = tmp_path_factory.mktemp("library")
    history, model = table(folder / "history.csv", HISTORY), folder / "clicks.model"
    return model, done("fit", history, *FIT, *LIBRARY, "-o", model, "--json").document


@pytest.fixture(scope="module")
def library(fitted: tuple[Path, dict[str, Any]]) -> Path:
    return fitted[0]


def cut(records: list[tuple[str, str]], width: int) -> list[tuple[str, ...]]:
    """The batches of every stream, the last of each perhaps shorter."""
    named = [{"person": person, "place": place} for person, place in records]
    batches = []
    for stream in by_stream(named).values():
        told = [row["place"] for row in stream]
        batches += [tuple(told[i : i + width]) for i in range(0, len(told), width)]
    return batches


def read(path: Path) -> tuple[StreamModel, PatternLibrary]:
    model = load(path)
    assert isinstance(model, StreamModel)
    assert isinstance(model.chain, PatternLibrary)
    return model, model.chain


def clear(result: Result, *words: str) -> None:
    """Exit code 2, one line, no traceback, and it says what it should."""
    assert result.code == 2
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    for word in words:
        assert word in result.err


# The fit -----------------------------------------------------------------------------------------


def test_the_report_counts_patterns_and_the_share_of_batches_they_are(
    fitted: tuple[Path, dict[str, Any]],
) -> None:
    path, report = fitted
    _, chain = read(path)
    labels = chain.alphabet.labels
    known = {tuple(labels[place] for place in row if place >= 0) for row in chain.patterns.tolist()}
    batches = cut(HISTORY, 3)
    assert report["patterns"] == len(known) == 40
    assert report["kept"] == pytest.approx(sum(b in known for b in batches) / len(batches))
    assert 0.5 < report["kept"] <= 1
    assert (report["streams"], report["rows"], report["symbols"]) == (3, len(HISTORY), 4)
    assert report["transitions"] == len(batches) - 3
    assert report["model"] == str(path)
    assert 0 <= report["predictability"] <= 1


def test_the_commonest_patterns_are_kept(library: Path) -> None:
    _, chain = read(library)
    labels = chain.alphabet.labels
    known = {tuple(labels[place] for place in row if place >= 0) for row in chain.patterns.tolist()}
    assert {len(pattern) for pattern in known} == {1, 2, 3}
    common = [pattern for pattern, _ in Counter(cut(HISTORY, 3)).most_common(20)]
    assert set(common) <= known


def test_a_fit_without_batches_has_no_patterns(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", HISTORY)
    report = done("fit", history, *FIT, "-o", tmp_path / "city.model", "--json").document
    assert (report["patterns"], report["kept"]) == (None, None)


def test_the_fit_says_what_it_kept(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", HISTORY)
    said = done("fit", history, *FIT, *LIBRARY, "-o", tmp_path / "clicks.model")
    assert "40 patterns, which are " in said.out
    assert said.err == ""
    few = done("fit", history, *FIT, "--batch", 3, "--patterns", 4, "-o", tmp_path / "few.model")
    assert "warning: only " in few.err and "keep more patterns" in few.err


def test_the_same_history_gives_the_same_library_from_any_format(
    library: Path, tmp_path: Path
) -> None:
    for suffix in ("jsonl", "parquet", "arrow"):
        history = table(tmp_path / f"history.{suffix}", HISTORY)
        again = tmp_path / f"{suffix}.model"
        done("fit", history, *FIT, *LIBRARY, "-o", again, "--quiet")
        assert again.read_bytes() == library.read_bytes()


def test_a_library_survives_its_file(library: Path) -> None:
    model, chain = read(library)
    again, same = read(library)
    assert (model.stream, model.values) == ("person", ("place",))
    assert model.transitions == len(cut(HISTORY, 3)) - 3
    assert chain.fingerprint == same.fingerprint
    assert chain.patterns.tolist() == same.patterns.tolist()
    assert (chain.width, chain.full_support) == (3, True)
    assert again.chain.fingerprint == model.chain.fingerprint


def test_numbers_and_grids_have_patterns_too(tmp_path: Path) -> None:
    points = [(person, PLACES.index(place), PLACES.index(place) % 2) for person, place in HISTORY]
    history = write(tmp_path / "history.csv", ["person", "x", "y"], points)
    stream = ("--stream", "person", "--batch", 2, "--patterns", 20, "--quiet")
    done("fit", history, *stream, "--value", "x", "--bins", 3, "-o", tmp_path / "bins.model")
    cells = ("--grid", "2x2", "--x", "x", "--y", "y")
    done("fit", history, *stream, *cells, "-o", tmp_path / "grid.model")
    for name in ("bins", "grid"):
        private, model = tmp_path / f"{name}.csv", tmp_path / f"{name}.model"
        live = write(tmp_path / "live.csv", ["person", "x", "y"], points[:15])
        done("release", live, "-m", model, "--epsilon", 1, "-o", private)
        assert len(rows(private)) == 15
        done("audit", private, "-m", model, "--against", live)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (("--batch", 0), "--batch must be a whole number of at least 1"),
        (("--batch", -2), "--batch must be a whole number of at least 1"),
        (("--batch", 3, "--patterns", 2), "--patterns must be a whole number of at least 3"),
        (("--batch", 3, "--order", 2), "order must be 1 for a library"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(
    tmp_path: Path, wrong: tuple[object, ...], rule: str
) -> None:
    history, model = table(tmp_path / "history.csv", HISTORY[:30]), tmp_path / "clicks.model"
    clear(call("fit", history, *FIT, *wrong, "-o", model), rule)
    assert not model.exists()


# What a library is for ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [(), ("--batch", 3)])
def test_a_library_releases_batches_of_its_width(
    library: Path, tmp_path: Path, given: tuple[object, ...]
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    ledger = tmp_path / "city.ledger"
    run = ("-m", library, "--epsilon", 0.7, *given, "--ledger", ledger)
    done("release", live, *run, "-o", private)
    streams = by_stream(rows(private))
    assert sum(map(len, streams.values())) == len(LIVE)
    for stream in streams.values():
        assert [int(row["sequence"]) for row in stream] == list(range(len(stream)))
        assert [int(row["batch"]) for row in stream] == [3 * (i // 3) for i in range(len(stream))]
        for place, row in enumerate(stream):
            last = place % 3 == 2 or place == len(stream) - 1
            assert (float(row["sip"]) > 0) <= last
            assert float(row["sip"]) <= 0.7 * (place % 3 + 1)
    report = done(
        "audit", private, "-m", library, "--ledger", ledger, "--against", live, "--json"
    ).document
    assert (report["passed"], report["rows"]) == (True, len(LIVE))
    for entry in report["streams"].values():
        assert abs(entry["gain"]) <= entry["sip"]


def test_a_release_tells_kept_patterns_alone(library: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", library, "--epsilon", 1.5, "-o", private)
    _, chain = read(library)
    labels = chain.alphabet.labels
    known = {tuple(labels[place] for place in row if place >= 0) for row in chain.patterns.tolist()}
    told = [(row["person"], row["released"]) for row in rows(private)]
    assert set(cut(told, 3)) <= known


def test_a_library_and_another_width_exclude_each_other(library: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    for width in (1, 2, 4):
        run = ("release", live, "-m", library, "--epsilon", 1, "--batch", width, "-o", private)
        clear(call(*run), f"--batch must be that of the library, 3; got {width}")
        assert not private.exists()


def test_a_library_may_wait_without_being_told_its_width(library: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", library, "--epsilon", 1, "--wait", 60, "-o", private)
    done("audit", private, "-m", library)


def test_an_audit_finds_a_change_in_a_release_by_patterns(library: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", library, "--epsilon", 0.7, "-o", private)
    told = rows(private)
    told[0]["sip"], told[2]["sip"] = "0.25", "0.25"
    write(private, list(told[0]), [list(row.values()) for row in told])
    result = call("audit", private, "-m", library)
    assert result.code == 1
    assert "the audit FAILED" in result.out


@pytest.mark.parametrize("given", [(), ("--batch", 3), ("--batch", "1,3"), ("--batch", 2)])
def test_a_library_cannot_be_planned_for(library: Path, given: tuple[object, ...]) -> None:
    clear(call("plan", "-m", library, "--epsilon", 1, *given), "library")


@pytest.mark.parametrize("given", [(), ("--batch", 3), ("--batch", 2)])
def test_a_library_cannot_be_compiled(
    library: Path, tmp_path: Path, given: tuple[object, ...]
) -> None:
    target = tmp_path / "clicks.policy"
    result = call("compile", "-m", library, "--epsilon", 1, *given, "-o", target)
    clear(result, "model must be a chain of single values: fit it without --batch; got")
    assert not target.exists()


def test_another_library_is_refused_by_the_audit(library: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", library, "--epsilon", 0.7, "-o", private)
    history = table(tmp_path / "history.csv", walk(5, rows=300))
    done("fit", history, *FIT, *LIBRARY, "-o", tmp_path / "other.model")
    clear(
        call("audit", private, "-m", tmp_path / "other.model"),
        "model must be the one the release was made with",
    )
