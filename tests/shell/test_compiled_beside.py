"""The policy that `compile` wrote beside a model is found by the release that it is for."""

from pathlib import Path

import pytest

from sfumato.stream.policy_files import load_policy
from sfumato.stream.release_document import read_spec
from tests.shell.running import done
from tests.shell.tables import table

COLUMNS = ("--stream", "person", "--value", "place", "--quiet")


def fitted(folder: Path, symbols: int) -> Path:
    """A model of people who go round, and a few of their values."""
    names = [f"p{place:02}" for place in range(symbols)]
    path = [("a", names[(place // 3) % symbols]) for place in range(30 * symbols)]
    done("fit", table(folder / "history.csv", path), *COLUMNS, "-o", folder / "town.model")
    table(folder / "live.csv", path[: 3 * symbols])
    table(folder / "later.csv", path[3 * symbols : 6 * symbols])
    return folder / "town.model"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("three")
    model = fitted(folder, 3)
    few = ("--epsilon", 0.6, "--steps", 200, "-q")
    done("compile", "-m", model, *few, "-o", folder / "town.policy")
    done("compile", "-m", model, *few, "--kind", "kept", "-o", folder / "town.old.policy")
    return folder


def test_a_far_sighted_release_takes_the_policy_that_was_compiled_for_it(three: Path) -> None:
    release = ("release", three / "live.csv", "-m", three / "town.model", "--epsilon", 0.6)
    said = done(*release, "-o", three / "p.csv").err
    assert f"channels come from {three / 'town.policy'}" in said
    assert "compiling" not in said
    policy = load_policy(three / "town.policy")
    assert policy.kind == "solved"
    assert read_spec(three / "p.csv.plan.json").policy == policy.fingerprint
    audit = ("audit", three / "p.csv", "-m", three / "town.model", "--against", three / "live.csv")
    assert "found nothing wrong" in done(*audit).out


def test_a_ledger_goes_on_with_the_kept_channels_that_it_was_begun_with(three: Path) -> None:
    rule = ("-m", three / "town.model", "--epsilon", 0.6, "--ledger", three / "book", "-q")
    old = three / "town.old.policy"
    done("release", three / "live.csv", *rule, "--policy", old, "-o", three / "one.csv")
    done("release", three / "later.csv", *rule, "-o", three / "two.csv")
    kept = load_policy(old)
    assert kept.kind == "kept"
    assert read_spec(three / "two.csv.plan.json").policy == kept.fingerprint


def test_a_policy_for_another_budget_is_left_where_it_is(three: Path) -> None:
    done(
        *("release", three / "live.csv", "-m", three / "town.model", "--epsilon", 0.5),
        *("--method", "step-wise", "-q", "-o", three / "other.csv"),
    )
    assert read_spec(three / "other.csv.plan.json").policy is None


@pytest.mark.parametrize(("symbols", "taken"), [(26, False), (34, True)])
def test_small_programs_of_large_alphabets_are_taken_and_kept_channels_are_named(
    tmp_path: Path, symbols: int, taken: bool
) -> None:
    model = fitted(tmp_path, symbols)
    done("compile", "-m", model, "--epsilon", 0.6, "--steps", 32, "-q")
    head = (tmp_path / "live.csv").read_text().splitlines()[:7]
    (tmp_path / "live.csv").write_text("\n".join(head) + "\n")
    given = ("-m", model, "--epsilon", 0.6, "-o", tmp_path / "p.csv")
    said = done("release", tmp_path / "live.csv", *given).err
    policy = load_policy(tmp_path / "town.policy")
    named = read_spec(tmp_path / "p.csv.plan.json").policy
    assert policy.solves is taken
    assert (named == policy.fingerprint) is taken
    assert f"--policy {tmp_path / 'town.policy'} would be faster" in said or taken
