"""`sfumato compile`, and releases and audits with the policy it makes."""

import shutil
from pathlib import Path

import pytest

from tests.shell.releasing import EVEN, LIVE, STEP, grouped
from tests.shell.running import call, done, rows
from tests.shell.tables import by_stream, table

RULE = ("--epsilon", "0.5", *STEP)


@pytest.fixture(scope="module", params=["kept", "solved"])
def compiled(
    model: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Path:
    """A copy of the model with a policy beside it, of channels that are kept or solved."""
    copy = tmp_path_factory.mktemp("compiled") / "city.model"
    shutil.copy(model, copy)
    done("compile", "-m", copy, *RULE, "--steps", 200, "--kind", request.param)
    assert copy.with_suffix(".policy").is_file()
    return copy


def test_compiling_says_what_it_made(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "own.policy"
    said = done("compile", "-m", model, *RULE, "--steps", 200, "-o", target, "--json").document
    assert said["output"] == str(target) and target.is_file()
    assert said["epsilon"] == 0.5 and said["ldp"] is None
    assert said["channels"] >= 1 and said["bytes"] > 0
    assert 0 <= said["extra_loss"] < 0.2 and 0 <= said["missed"] <= 1


def test_an_even_share_of_a_total_is_compiled_for(model: Path, tmp_path: Path) -> None:
    total = ("--budget", 10, "--horizon", 40, "--ldp", 20, *EVEN, "-o", tmp_path / "own.policy")
    said = done("compile", "-m", model, *total, "--steps", 64, "--json").document
    assert (said["epsilon"], said["ldp"]) == (0.25, 0.5)


def test_a_compiled_release_passes_its_audit(compiled: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    ledger, policy = tmp_path / "city.ledger", compiled.with_suffix(".policy")
    run_with = ("-m", compiled, *RULE, "--policy", policy, "--ledger", ledger)
    done("release", live, *run_with, "-o", private)
    assert len(rows(private)) == len(LIVE)
    assert all(float(row["sip"]) <= 0.5 for row in rows(private))
    # The policy lies beside the model, where an audit looks for it.
    report = done("audit", private, "-m", compiled, "--ledger", ledger, "--json").document
    assert report["passed"] and report["rows"] == len(LIVE)
    more = ("--resume", "-o", tmp_path / "again.csv", "--json")
    again = done("release", live, *run_with, *more).document
    assert again["repeated"] == len(LIVE)
    assert (tmp_path / "again.csv").read_bytes() == private.read_bytes()


def test_draws_of_a_compiled_release_are_repeated(
    compiled: Path, tmp_path: Path, key: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    policy = ("--policy", compiled.with_suffix(".policy"))
    done("release", live, "-m", compiled, *RULE, *policy, "--key-file", key, "-o", private)
    looked = ("--against", live, "--key-file", key, "--json")
    report = done("audit", private, "-m", compiled, *looked).document
    assert report["passed"] and report["replayed"]["repeated"] == len(LIVE)


def test_rows_in_groups_and_one_by_one_get_the_same_answers(
    compiled: Path, tmp_path: Path, key: Path
) -> None:
    policy = compiled.with_suffix(".policy")
    rule = ("-m", compiled, *RULE, "--policy", policy, "--key-file", key)
    live = table(tmp_path / "live.csv", LIVE)
    done("release", live, *rule, "-o", tmp_path / "whole.csv")
    ledger = tmp_path / "city.ledger"
    for count in range(3, len(LIVE) + 3, 3):  # groups too small for a fleet
        table(live, LIVE[:count])
        again = ("--resume",) if ledger.exists() else ()
        done("release", live, *rule, "--ledger", ledger, *again, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_moments_that_pass_are_the_same_in_groups_and_one_by_one(
    compiled: Path, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, private = compiled.with_suffix(".policy"), tmp_path / "whole.csv"
    rule = ("-m", compiled, *RULE, "--policy", policy, "--key-file", key, "--missing", "skip")
    gaps = [(who, "" if row % 4 == 1 else what) for row, (who, what) in enumerate(LIVE)]
    live = table(tmp_path / "live.csv", gaps)
    report = done("release", live, *rule, "-o", private, "--json").document
    assert report["missing"] == sum(what == "" for _, what in gaps) > 8
    assert [row["outcome"] == "skipped" for row in rows(private)] == [w == "" for _, w in gaps]
    grouped(monkeypatch, 1)
    done("release", live, *rule, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == private.read_bytes()
    done("audit", private, "-m", compiled)


def test_a_budget_that_ends_is_refused_by_row_and_what_was_drawn_is_kept(
    compiled: Path, tmp_path: Path
) -> None:
    policy, ledger = compiled.with_suffix(".policy"), tmp_path / "city.ledger"
    live = table(tmp_path / "live.csv", LIVE)
    steps = min(len(some) for some in by_stream(_named(LIVE)).values()) - 1
    rule = ("-m", compiled, "--budget", 0.5 * steps, "--horizon", steps, *EVEN, "--policy", policy)
    refused = call("release", live, *rule, "--ledger", ledger, "-o", tmp_path / "private.csv")
    assert refused.code == 2 and "live.csv, row " in refused.err and "budget" in refused.err
    assert not (tmp_path / "private.csv").exists()
    quiet = ("--when-exhausted", "suppress", "-o", tmp_path / "private.csv")
    done("release", live, *rule, *quiet)
    done("audit", tmp_path / "private.csv", "-m", compiled)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (("--loss", "absolute"), "compiled for this chain, loss and method"),
        (("--method", "randomized-response"), "compiled for this chain, loss and method"),
    ],
)
def test_a_policy_for_something_else_is_refused(
    compiled: Path, models: Path, tmp_path: Path, wrong: tuple[str, ...], rule: str
) -> None:
    policy = compiled.with_suffix(".policy")
    levels = models / "levels.model"
    model = levels if "absolute" in wrong else compiled
    live = table(tmp_path / "live.csv", LIVE[:5])
    given = ("-m", model, *RULE, "--policy", policy, *wrong)
    refused = call("release", live, *given, "-o", tmp_path / "private.csv")
    assert refused.code == 2 and rule in refused.err
    assert not (tmp_path / "private.csv").exists()


def test_an_audit_without_the_policy_says_what_it_needs(
    compiled: Path, model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    policy = compiled.with_suffix(".policy")
    done("release", live, "-m", compiled, *RULE, "--policy", policy, "-o", private)
    refused = call("audit", private, "-m", model)
    assert (
        refused.code == 2 and "--policy must be a file that `sfumato compile` wrote" in refused.err
    )
    done("audit", private, "-m", model, "--policy", policy)
    other = tmp_path / "other.policy"
    done("compile", "-m", model, "--epsilon", 0.4, *STEP, "--steps", 64, "-o", other)
    swapped = call("audit", private, "-m", model, "--policy", other)
    assert swapped.code == 2 and "be the one the release was made with" in swapped.err


def test_a_model_is_no_policy_and_a_policy_no_model(compiled: Path, tmp_path: Path) -> None:
    live, policy = table(tmp_path / "live.csv", LIVE), compiled.with_suffix(".policy")
    out = ("-o", tmp_path / "private.csv")
    one = call("release", live, "-m", compiled, *RULE, "--policy", compiled, *out)
    other = call("release", live, "-m", policy, *RULE, *out)
    assert one.code == other.code == 2
    assert "hold a policy" in one.err and "hold a chain" in other.err


def test_bad_requests_are_refused_before_anything_is_simulated(model: Path, tmp_path: Path) -> None:
    for wrong, rule in (
        (("--method", "foo"), "method must be one of"),
        (("-o", tmp_path / "no" / "x.policy"), "be a new file in a folder that exists"),
        (("-o", model), "be a new file in a folder that exists"),
        (("--max-channels", 0), "--max-channels must be"),
    ):
        refused = call("compile", "-m", model, *RULE, *wrong)
        assert refused.code == 2 and rule in refused.err
    large = call("compile", "-m", model, "--epsilon", 30, *STEP, "-o", tmp_path / "x.policy")
    assert large.code == 2 and "epsilon must be at most 20" in large.err


def test_the_policy_is_not_overwritten(compiled: Path, tmp_path: Path) -> None:
    live, policy = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    shutil.copy(compiled.with_suffix(".policy"), policy)
    kept = policy.read_bytes()
    refused = call("release", live, "-m", compiled, *RULE, "--policy", policy, "-o", policy)
    assert refused.code == 2 and "--policy must be a file of its own" in refused.err
    assert policy.read_bytes() == kept


def _named(live: object) -> list[dict[str, str]]:
    return [{"person": person, "place": place} for person, place in live]  # type: ignore[attr-defined]
