"""Private fits of tables: what leaves comes through noise, or was public before."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.models.stream_model import StreamModel
from sfumato.stream.fit_model import Cut
from sfumato.stream.private_counts import PrivacySpec
from sfumato.stream.private_fit import fit_private
from sfumato.tables.readers import Table

SIMULATED = PrivacySpec(1.0, 5, Purpose.SIMULATION)


def history(tmp_path: Path, rows: list[tuple[str, object]], name: str = "history.csv") -> Table:
    path = tmp_path / name
    lines = [f"{owner},{value}" for owner, value in rows]
    path.write_text("\n".join(["stream,value", *lines]) + "\n")
    return Table.at(str(path))


ROWS: list[tuple[str, object]] = [("u1", "a"), ("u2", "b"), ("u1", "a"), ("u1", "b"), ("u2", "b")]


def test_the_promise_stands_in_the_file(tmp_path: Path) -> None:
    model, report = fit_private(history(tmp_path, ROWS), PrivacySpec(1.0, 5), alphabet=["a", "b"])
    sf.save(model, tmp_path / "city.model")
    back = sf.load(tmp_path / "city.model")
    assert isinstance(back, StreamModel) and back.private == report.private
    assert back.private is not None and not back.private.simulated
    assert back.private.unit == "stream" and back.private.contribution == 5


def test_models_without_a_promise_are_stored_as_they_were(tmp_path: Path) -> None:
    model, _ = sf.stream.fit_table(history(tmp_path, ROWS))
    assert model.private is None
    sf.save(model, tmp_path / "city.model")
    assert b"private" not in (tmp_path / "city.model").read_bytes()


def test_what_is_no_symbol_tells_nothing_and_parts_its_neighbours(tmp_path: Path) -> None:
    """Refused or counted, a value outside the alphabet would tell of itself."""
    told = []
    for number, cells in enumerate((("a", "?", "b", ""), ("a", "zzz", "b", "nan"), ("a", "b"))):
        rows: list[tuple[str, object]] = [(f"u{u}", cell) for u in range(100) for cell in cells]
        model, report = fit_private(
            history(tmp_path, rows, f"h{number}.csv"),
            SIMULATED,
            alphabet=["a", "b"],
            randomness=sf.seeded(3),
        )
        told.append((model.chain.fingerprint, asdict(report)))
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("name", ["nobody.csv", "nobody.jsonl"])
def test_a_history_of_nobody_is_fitted_like_any_other(tmp_path: Path, name: str) -> None:
    """A refusal would tell whether the only person is there."""
    path = tmp_path / name
    path.write_text("stream,value\n" if name.endswith("csv") else "")
    model, report = fit_private(Table.at(str(path)), PrivacySpec(1.0, 5), alphabet=["a", "b"])
    assert model.chain.full_support and model.private == report.private


def test_the_report_says_nothing_but_what_is_in_the_model(tmp_path: Path) -> None:
    """Two histories with the same noisy counts have the same report, whatever their rows."""
    few: list[tuple[str, object]] = [(f"u{user}", cell) for user in range(50) for cell in "aabb"]
    many = [*few, *[("u3", "?")] * 50]
    told = [
        asdict(
            fit_private(
                history(tmp_path, rows, f"{len(rows)}.csv"),
                SIMULATED,
                alphabet=["a", "b"],
                randomness=sf.seeded(3),
            )[1]
        )
        for rows in (few, many)
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("cut", "alphabet"),
    [(Cut(), None), (Cut(), []), (Cut(bins=4), None), (Cut(bins=4), ["a"])],
)
def test_what_the_table_would_have_to_tell_is_refused(
    cut: Cut, alphabet: list[str] | None, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match="private"):
        fit_private(history(tmp_path, ROWS), PrivacySpec(1.0), cut=cut, alphabet=alphabet)


def test_bins_of_a_given_range_need_no_symbols(tmp_path: Path) -> None:
    rows: list[tuple[str, object]] = [("u1", value) for value in (1.0, 9.0, 100.0, "x")]
    model, _ = fit_private(
        history(tmp_path, rows), PrivacySpec(1.0), cut=Cut(bins=2, ranges=((0.0, 10.0),))
    )
    assert model.alphabet.labels == ("2.5", "7.5")
    np.testing.assert_allclose(model.single_values.transition().sum(axis=1), 1.0)
