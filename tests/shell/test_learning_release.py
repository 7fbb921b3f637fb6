"""`release --learn`: versions that outputs lead to, kept, resumed and audited."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.store.codec import to_bytes
from sfumato.store.outputs import write_whole
from sfumato.stream import learning_audit
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.version_files import LearntVersions, load_versions
from tests.shell.running import call, done, piped, rows
from tests.shell.tables import csv_bytes

STREAMS, MOMENTS = 20, 10
RULES = ("--epsilon", 2, "--learn", "--learn-after", 80, "--scouts", 5, "--ready", 0.0001)


def table(moments: range) -> bytes:
    """Sticky bits of some people, moment after moment."""
    coins, values = random.Random(7), [who % 2 for who in range(STREAMS)]
    told = []
    for moment in range(MOMENTS):
        told += [(f"u{who}", moment, "ab"[value]) for who, value in enumerate(values)]
        values = [value if coins.random() < 0.95 else 1 - value for value in values]
    kept = [row for row in told if row[1] in moments]
    return csv_bytes(["user", "when", "value"], kept)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release in one go, and the same data in two days; few values are enough to move."""
    home = tmp_path_factory.mktemp("learning")
    for name, moments in (("all", range(MOMENTS)), ("monday", range(5))):
        (home / f"{name}.csv").write_bytes(table(moments))
    nothing = ("--uniform", "--values", "a,b", "--stream", "user")
    done("fit", *nothing, "-o", home / "start.model")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfumato.stream.model_versions._NARROW", 1.0)
        patch.setattr("sfumato.stream.model_versions._WALKS", 1)
        patch.setattr("sfumato.stream.model_versions._LENGTH", 4)
        done(*released(home, "all", "whole"))
        yield home


def released(home: Path, source: str, name: str, *more: object) -> tuple[object, ...]:
    given = ("release", home / f"{source}.csv", "-m", home / "start.model", "--seed", 6)
    kept = ("--time", "when", "--ledger", home / f"{name}.ledger")
    return *given, *RULES, *kept, "-o", home / f"{name}-{source}.csv", *more


def audited(home: Path, *more: object) -> tuple[object, ...]:
    return "audit", *more, "-m", home / "start.model", "--simulation"


def test_rows_say_their_version_and_an_audit_learns_all_of_them_again(house: Path) -> None:
    left = rows(house / "whole-all.csv")
    versions = load_versions(house / "whole-all.csv.versions").versions
    assert [version.values for version in versions] == [80, 160]
    assert any(version.moves for version in versions)
    assert {int(row["signal"]) // 1_000 for row in left} > {0}
    assert (house / "whole.ledger.versions").read_bytes() == to_bytes(
        load_versions(house / "whole-all.csv.versions")
    )
    for given in ((house / "whole-all.csv",), ("--ledger", house / "whole.ledger")):
        found = done(*audited(house, *given))
        assert "version 2, after 160 values" in found.out
        assert "the last estimate" in found.out and "nothing wrong" in found.out
    said = done("explain", house / "whole.ledger.versions").out
    assert "started from nothing" in said and "Confidence 0.95 for all versions" in said
    assert "started from nothing" in done("explain", house / "whole-all.csv.plan.json").out


def test_a_release_that_goes_on_gives_the_same_answers_as_one_in_one_go(house: Path) -> None:
    done(*released(house, "monday", "days"))
    done(*released(house, "all", "days"))
    assert rows(house / "days-all.csv") == rows(house / "whole-all.csv")
    done(*audited(house, house / "days-monday.csv", house / "days-all.csv"))


def test_a_forged_version_is_found_and_no_release_goes_on_with_it(house: Path) -> None:
    path = house / "whole.ledger.versions"
    honest = path.read_bytes()
    kept = load_versions(path)
    forged = LearntVersions(kept.rules, (kept.versions[1], kept.versions[1]))
    write_whole(path, to_bytes(forged))
    try:
        found = call(*audited(house, "--ledger", house / "whole.ledger"))
        assert found.code == 1 and "another model was put in their place" in found.out
        refused = call(*released(house, "all", "whole", "-q"))
        assert refused.code == 2 and "outputs of the ledger lead to" in refused.err
    finally:
        write_whole(path, honest)


def test_a_row_that_was_changed_before_a_cut_is_found(house: Path, tmp_path: Path) -> None:
    left = (house / "whole-all.csv").read_text().splitlines(keepends=True)
    cells = left[1].split(",")
    cells[2] = "b" if cells[2] == "a" else "a"
    (tmp_path / "forged.csv").write_text("".join([left[0], ",".join(cells), *left[2:]]))
    shutil.copy(house / "whole-all.csv.plan.json", tmp_path / "forged.csv.plan.json")
    found = call(*audited(house, tmp_path / "forged.csv"))
    assert found.code == 1 and "sip must be" in found.out


def test_an_audit_holds_a_learning_release_against_the_constant_that_fits_best(
    house: Path, tmp_path: Path
) -> None:
    """The model knows nothing: to it the rarest value is as good a constant as any."""
    true = [(f"u{who}", moment, "b") for moment in range(5) for who in range(20)]
    (tmp_path / "live.csv").write_bytes(csv_bytes(["user", "when", "value"], true))
    given = ("release", tmp_path / "live.csv", "-m", house / "start.model", "--seed", 6)
    done(*given, "--epsilon", 1, "--learn", "-o", tmp_path / "p.csv")
    against = ("--against", tmp_path / "live.csv")
    found = done(*audited(house, tmp_path / "p.csv", *against)).out
    assert "which tells nothing: 0 % wrong;" in found and "NO BETTER THAN SILENCE" in found


@pytest.mark.parametrize("which", ["model", "ledger"])
def test_files_of_versions_overwrite_nothing(house: Path, tmp_path: Path, which: str) -> None:
    out, model = tmp_path / "p.csv", house / "start.model"
    own = tmp_path / "p.csv.versions"
    asked: tuple[object, ...] = ("--ledger", own)
    if which == "model":
        model, asked = Path(shutil.copy(model, own)), ()
    given = ("release", house / "all.csv", "-m", model, *RULES, *asked, "--time", "when")
    found = call(*given, "-o", out)
    assert found.code == 2 and "be a file of its own" in found.err
    assert not out.exists()


def test_a_file_of_versions_that_ends_early_is_found(house: Path, tmp_path: Path) -> None:
    for name in ("whole-all.csv", "whole-all.csv.plan.json", "whole-all.csv.versions"):
        shutil.copy(house / name, tmp_path / name)
    path = tmp_path / "whole-all.csv.versions"
    kept = load_versions(path)
    write_whole(path, to_bytes(LearntVersions(kept.rules, kept.versions[:1])))
    found = call(*audited(house, tmp_path / "whole-all.csv"))
    assert found.code == 1 and "another model was put in their place" in found.out


def test_with_tables_the_versions_of_the_ledger_are_looked_at_too(house: Path) -> None:
    path = house / "whole.ledger.versions"
    honest = path.read_bytes()
    kept = load_versions(path)
    write_whole(path, to_bytes(LearntVersions(kept.rules, (kept.versions[1], kept.versions[1]))))
    try:
        both = (house / "whole-all.csv", "--ledger", house / "whole.ledger")
        found = call(*audited(house, *both))
        assert found.code == 1 and "another model was put in their place" in found.out
    finally:
        write_whole(path, honest)


def test_rows_that_are_committed_while_an_audit_learns_accuse_nobody(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, learnt = tmp_path / "live.ledger", learning_audit.learnt_plan
    lines = table(range(MOMENTS)).decode().splitlines()
    given = ("release", "-", "-m", house / "start.model", "--seed", 6, *RULES)
    with piped(*given, "--time", "when", "--ledger", ledger, "-o", "-") as pipe:

        def answer(some: list[str]) -> None:
            for line in some:
                pipe.send(line)
            assert [pipe.receive() for _ in some][-1]

        def while_it_goes_on(*asked: Any) -> LearningPlan:
            plan = learnt(*asked)
            answer(lines[101:])
            return plan

        answer(lines[:101])
        monkeypatch.setattr(learning_audit, "learnt_plan", while_it_goes_on)
        found = call(*audited(house, "--ledger", ledger))
        assert found.code == 0, found.out
        assert "version 1, after 80" in found.out and "version 2" not in found.out
        assert len(load_versions(f"{ledger}.versions").versions) == 2
        assert pipe.ended()[0] == 0


def test_what_a_learning_release_cannot_do_is_refused(house: Path, tmp_path: Path) -> None:
    given = ("release", house / "all.csv", "-m", house / "start.model", "-o", tmp_path / "p.csv")
    for more, rule in (
        (("--epsilon", 1, "--learn", "--batch", 2), "--batch must not come with --learn"),
        (("--budget", 9, "--horizon", 9, "--learn"), "a cap on each value"),
        (("--epsilon", 1, "--learn", "--when-unknown", "suppress"), "bets need all outputs"),
        (("--epsilon", 1, "--scouts", 3), "--scouts must come with --learn"),
        (("--epsilon", 1, "--learn", "--method", "optimal"), "not come with --method"),
    ):
        found = call(*given, *more)
        assert found.code == 2 and rule in found.err, found.err
    assert not (tmp_path / "p.csv").exists()


def test_a_model_that_knows_something_is_refused(house: Path, tmp_path: Path) -> None:
    done("fit", house / "all.csv", "--stream", "user", "-o", tmp_path / "fitted.model")
    given = ("release", house / "all.csv", "-m", tmp_path / "fitted.model", "--epsilon", 1)
    found = call(*given, "--learn", "-o", tmp_path / "p.csv")
    assert found.code == 2 and "knows nothing" in found.err
