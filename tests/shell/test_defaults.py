"""What a release does that is told a budget and nothing else; what it keeps, and who finds it."""

import shutil
from pathlib import Path

import pytest

from sfumato.stream.release_document import read_spec
from tests.shell.releasing import EVEN, LIVE, STEP
from tests.shell.running import call, done, refused, rows
from tests.shell.tables import table, walk

TWO = walk(5, rows=40, symbols=("in", "out"))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two places, with a policy that one release has left beside it."""
    folder = tmp_path_factory.mktemp("two")
    steady = [("a", "in" if place % 13 < 10 else "out") for place in range(390)]
    columns = ("--stream", "person", "--value", "place", "--quiet")
    done("fit", table(folder / "history.csv", steady), *columns, "-o", folder / "two.model")
    live = table(folder / "live.csv", TWO)
    said = done(
        "release", live, "-m", folder / "two.model", "--epsilon", 0.6, "-o", folder / "p.csv"
    )
    assert "compiling far-sighted channels" in said.err and "--method step-wise" in said.err
    return folder


@pytest.fixture
def home(fitted: Path, tmp_path: Path) -> Path:
    """A folder of its own with the same files."""
    return shutil.copytree(fitted, tmp_path / "home")


def kept(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.glob(f"*.*.{kind}"))


def test_a_cap_on_each_value_is_spent_far_sighted_with_channels_that_are_kept(home: Path) -> None:
    spec = read_spec(home / "p.csv.plan.json")
    assert (spec.method, spec.thrift) == ("far-sighted", None) and spec.policy is not None
    (policy,) = kept(home, "policy")
    before = policy.read_bytes()
    again = ("release", home / "live.csv", "-m", home / "two.model", "--epsilon", 0.6)
    said = done(*again, "-o", home / "q.csv").err
    assert "compiling" not in said and policy.read_bytes() == before
    assert read_spec(home / "q.csv.plan.json").policy == spec.policy
    assert "compiling" not in done(*again, "--quiet", "-o", home / "r.csv").err


def test_audit_and_recover_find_the_policy_or_make_it_again(home: Path) -> None:
    audit = ("audit", home / "p.csv", "-m", home / "two.model")
    (policy,) = kept(home, "policy")
    guesses = done("recover", home / "p.csv", "-m", home / "two.model", "-o", "-", "-q").out
    assert "found nothing wrong" in done(*audit).out
    policy.rename(home / "two.other-name.policy")  # by what it is, not by its name
    assert "found nothing wrong" in done(*audit).out
    (home / "two.other-name.policy").unlink()
    assert "found nothing wrong" in done(*audit).out  # model and rules tell all of it
    assert done("recover", home / "p.csv", "-m", home / "two.model", "-o", "-", "-q").out == guesses


def test_another_price_is_another_policy_and_leaks_less(home: Path) -> None:
    rule, before = ("-m", home / "two.model", "--epsilon", 0.6), kept(home, "policy")
    thrifty = (*rule, "--thrift", 0.5, "-o", home / "cheap.csv")
    done("release", home / "live.csv", *thrifty)
    assert len(kept(home, "policy")) == 2
    assert read_spec(home / "cheap.csv.plan.json").thrift == 0.5
    leaked = [
        sum(float(row["sip"]) for row in rows(home / name)) for name in ("p.csv", "cheap.csv")
    ]
    assert leaked[1] < 0.9 * leaked[0]
    assert "found nothing wrong" in done("audit", home / "cheap.csv", "-m", home / "two.model").out
    (other,) = {*kept(home, "policy")} - {*before}
    shutil.copy(other, before[0])  # under the name of the first: it does not fit
    said = done("release", home / "live.csv", *rule, "-o", home / "again.csv").err
    assert "of no use, made again" in said
    spec = read_spec(home / "again.csv.plan.json")
    assert spec.policy == read_spec(home / "p.csv.plan.json").policy


@pytest.mark.parametrize("damage", [b"", b"sfumato\nnot a policy"])
def test_a_damaged_policy_is_made_again(home: Path, damage: bytes) -> None:
    (policy,) = kept(home, "policy")
    whole = policy.read_bytes()
    policy.write_bytes(damage)
    again = ("release", home / "live.csv", "-m", home / "two.model", "--epsilon", 0.6)
    assert "of no use, made again" in done(*again, "-o", home / "q.csv").err
    assert policy.read_bytes() == whole


def test_a_ledger_goes_on_by_its_own_rules(home: Path) -> None:
    model, ledger = home / "two.model", ("--ledger", home / "two.ledger", "--append")
    for budget, own in ((("--epsilon", 0.5), STEP), (("--budget", 9, "--horizon", 90), EVEN)):
        shutil.rmtree(home / "l", ignore_errors=True)
        (home / "l").mkdir()
        ledger = ("--ledger", home / "l" / "two.ledger", "--append")
        first = ("release", home / "live.csv", "-m", model, *budget)
        done(*first, *own, *ledger, "-o", home / "l" / "first.csv")
        done(*first, *ledger, "-o", home / "l" / "second.csv")  # not the default of a new one
        spec = read_spec(home / "l" / "second.csv.plan.json")
        assert (spec.method, spec.every) == ("optimal", None)
    other = call(*first, "--every", 3, *ledger, "-o", home / "l" / "third.csv")
    assert other.code == 2 and "another --every" in other.err


def test_a_total_is_spent_where_it_is_best_and_what_was_found_is_kept(
    model: Path, tmp_path: Path
) -> None:
    shutil.copy(model, tmp_path / "city.model")
    live, total = table(tmp_path / "live.csv", LIVE), ("--budget", 3, "--horizon", 30)
    run = ("release", live, "-m", tmp_path / "city.model", *total)
    assert "the total is spent in bursts" in done(*run, "-o", tmp_path / "a.csv").err
    (found,) = kept(tmp_path, "bursts")
    before = found.stat().st_mtime_ns
    done(*run, "-o", tmp_path / "b.csv")
    specs = [read_spec(tmp_path / f"{name}.csv.plan.json") for name in "ab"]
    assert specs[0].every == specs[1].every and (specs[0].every or 0) > 1
    assert found.stat().st_mtime_ns == before
    done(*run, *EVEN, "-o", tmp_path / "c.csv")
    assert read_spec(tmp_path / "c.csv.plan.json").every is None


def test_a_model_that_does_not_allow_far_sight_says_so(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", walk(1, rows=300))
    columns = ("--stream", "person", "--value", "place", "--order", 2, "--quiet")
    done("fit", history, *columns, "-o", tmp_path / "city.model")
    live, private = table(tmp_path / "live.csv", LIVE[:6]), tmp_path / "private.csv"
    said = done("release", live, "-m", tmp_path / "city.model", "--epsilon", 1, "-o", private).err
    assert "(--method step-wise): the model is no chain of order 1" in said
    assert read_spec(f"{private}.plan.json").method == "optimal"


def test_rules_are_those_of_the_policy_that_made_the_rows(home: Path) -> None:
    """Else a plan could state another promise, or another price, than what was released by."""
    plan = home / "p.csv.plan.json"
    honest = plan.read_text()
    audit = ("audit", home / "p.csv", "-m", home / "two.model")
    plan.write_text(honest.replace('"epsilon": 0.6', '"epsilon": 5.0'))
    refused(call(*audit), "--epsilon must be the policy's, 0.6")
    plan.write_text(honest.replace('  "sealed"', '  "thrift": 0.1,\n  "sealed"'))
    refused(call(*audit), "--thrift must be the policy's price of a nat, 0")
    ledger = ("--time", "when", "--ledger", home / "two.ledger")
    days = [home / "monday.csv", home / "tuesday.csv"]
    for day, path in enumerate(days):
        stamped = [(f"{person},{20 * day + n}", place) for n, (person, place) in enumerate(TWO[:8])]
        path.write_text("person,when,place\n" + "".join(f"{a},{b}\n" for a, b in stamped))
    rule = ("-m", home / "two.model", "--epsilon", 0.6, *ledger)
    done("release", days[0], *rule, "-o", home / "monday-private.csv")
    said = call("release", days[1], *rule, "--thrift", 0.2, "-o", home / "tuesday-private.csv")
    assert said.code == 2 and "--thrift must be the policy's price of a nat, 0" in said.err
    for other in (("--epsilon", 0.5), ("--budget", 9, "--horizon", 90)):
        rule = ("-m", home / "two.model", *other, *ledger)
        said = call("release", days[1], *rule, "-o", home / "tuesday-private.csv")
        assert said.code == 2 and "this ledger was begun with another model, budget" in said.err
    assert not (home / "tuesday-private.csv").exists()


@pytest.mark.parametrize(
    ("honest", "forged"),
    [
        ('"epsilon": 0.6', '"epsilon": 6e-1'),
        ('"epsilon": 0.6', '"epsilon": 0.1,\n  "epsilon": 0.6'),
        ('"program": "sfumato ', '"program": "a1 was in from 0 to 24; sfumato '),
        ('"sha256": "', '"sha256": "a1 was in: '),
        ('"late": "refuse",\n  "keep": []', '"keep": [],\n  "late": "refuse"'),
        ("\n}", "\n}\n\t\t"),
    ],
)
def test_a_sealed_plan_has_room_for_nothing_else(home: Path, honest: str, forged: str) -> None:
    plan = home / "p.csv.plan.json"
    text = plan.read_text()
    assert honest in text
    place = text.rindex(honest) if honest == "\n}" else text.index(honest)
    plan.write_text(text[:place] + forged + text[place + len(honest) :])
    refused(call("audit", home / "p.csv", "-m", home / "two.model"), "as a release writes it")
