"""`sfumato implied`: the numbers are those of the functions, and no bound is rounded down."""

import math
from pathlib import Path

import pytest

from sfumato.column import leakage_transfer as transfer
from sfumato.column import notion_relations as relations
from sfumato.column import repeated_leakage as repeated
from sfumato.core.guarantees import LIP
from tests.shell.running import call, done

PRIOR = [0.7, 0.1, 0.1, 0.1]
TOLD = "0.7,0.1,0.1,0.1"


def test_the_numbers_are_those_of_the_functions() -> None:
    found = done(
        *("implied", "--prior", TOLD, "--epsilon", 1, "--times", 3, "--other", "0.6,0.2,0.1,0.1"),
        *("--samples", 10_000, "--failure", 0.05, "--json"),
    ).document
    given = LIP(1.0)
    assert found == {
        "epsilon": 1.0,
        "ldp": relations.ldp_from_lip(given, PRIOR).epsilon,
        "repeated": repeated.repeated_bound([given] * 3, PRIOR).epsilon,
        "identifiability": relations.identifiability_from_lip(given, PRIOR),
        "mutual_information": relations.information_from_lip(given),
        "maximal_leakage": relations.maximal_leakage_from_lip(given),
        "other": transfer.transferred(given, PRIOR, [0.6, 0.2, 0.1, 0.1]).epsilon,
        "estimated": transfer.estimated(given, PRIOR, 10_000, 0.05).epsilon,
    }


def test_one_use_leaks_what_it_leaks() -> None:
    found = done("implied", "--prior", TOLD, "--epsilon", 0.3, "--json").document
    assert found["repeated"] == 0.3
    assert "other" not in found
    assert "estimated" not in found


def test_what_is_printed_is_still_a_bound() -> None:
    printed = done("implied", "--prior", "0.5,0.5", "--epsilon", 1, "--times", 2).out
    exact = done("implied", "--prior", "0.5,0.5", "--epsilon", 1, "--times", 2, "--json").document
    shown = [float(line.split("\t")[1]) for line in printed.splitlines()[2:]]
    names = ("ldp", "repeated", "identifiability", "mutual_information", "maximal_leakage")
    for here, there in zip(shown, (exact[name] for name in names), strict=True):
        assert here >= there
        assert math.isclose(here, there, rel_tol=1e-4)


def test_a_prior_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prior.txt"
    file.write_text("0.7 0.1\n0.1 0.1\n", encoding="utf-8")
    given = (done("implied", "--prior", p, "--epsilon", 1, "--json").document for p in (file, TOLD))
    assert next(given) == next(given)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--prior", "a,b", "--epsilon", 1), "--prior must be numbers"),
        (("--prior", "0.5,0.6", "--epsilon", 1), "sum to 1"),
        (("--prior", "1.0,0.0", "--epsilon", 1), "floor"),
        (("--prior", TOLD, "--epsilon", -1), "epsilon must be at least 0"),
        (("--prior", TOLD, "--epsilon", 1, "--other", "0.5,0.5"), "entries"),
        (("--prior", TOLD, "--epsilon", 1, "--samples", 0), "samples"),
        (("--prior", TOLD, "--epsilon", 1, "--samples", 9, "--failure", 2), "failure"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(options: tuple[object, ...], words: str) -> None:
    result = call("implied", *options)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.splitlines()) == 1
