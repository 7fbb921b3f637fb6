"""Certificates that anyone can compute again; ways to cheat with them, each with its message."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.store.attestation import canonical, sealed
from tests.shell.running import call, done, refused
from tests.shell.tables import write

Document = dict[str, Any]
Change = Callable[[Document], object]
WHOLE = 2**62
CASES: dict[str, list[Any]] = {
    "symbols": ["privatize", "survey.csv", "-c", "answer", "--history", "public.csv"],
    "groups": [
        *("privatize", "survey.csv", "-c", "answer", "--history", "public.csv"),
        *("--keep", "school"),
    ],
    "reports": [
        *("privatize", "survey.csv", "-c", "answer", "--history", "public.csv"),
        *("--mechanism", "unary-encoding"),
    ],
    "numbers": [
        *("privatize", "survey.csv", "-c", "income", "--history", "public.csv"),
        *("--range", "0:100", "--points", 21, "--mechanism", "laplace-each"),
    ],
    "set": [
        *("privatize", "survey.csv", "-c", "answer", "--history", "public.csv"),
        *("--radius", 0.1),
    ],
    "response": [
        *("privatize", "survey.csv", "-c", "grade", "--history", "public.csv"),
        *("--mechanism", "calibrated", "--loss", "absolute"),
    ],
    "private": ["privatize", "survey.csv", "-c", "answer"],
    "private-reports": [
        *("privatize", "survey.csv", "-c", "answer", "--mechanism", "subset-selection")
    ],
    "noise": [
        *("publish", "--table", "people.csv", "--columns", "height,weight", "--accuracy", 2),
        *("--sigma", 6, "--coupling", "none", "--order", "kept"),
    ],
    "series": [
        "realtime",
        "counts.csv",
        "--value",
        "cnt",
        "--sensitivity",
        1,
        "--method",
        "laplace",
    ],
    "streams": [
        *("temporal", "release", "visits.csv", "--stream", "town", "--value", "home"),
        *("--alpha", 1, "--backward", "chain.csv"),
    ],
}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a release of every kind, each with its certificate."""
    folder = tmp_path_factory.mktemp("released")
    rng = random.Random(3)
    names = ["id", "answer", "grade", "income", "school"]
    for file, count in (("survey.csv", 120), ("public.csv", 240)):
        rows = [
            (
                f"{file[0]}{row}",
                rng.choice(["yes", "no", "no", "maybe"]),
                rng.randrange(6),
                round(rng.gauss(50, 12), 2),
                rng.choice(["east", "west"]),
            )
            for row in range(count)
        ]
        write(folder / file, names, rows)
    people = [(rng.gauss(170, 8), rng.gauss(75, 9)) for _ in range(60)]
    write(folder / "people.csv", ["height", "weight"], people)
    write(folder / "counts.csv", ["cnt"], [(rng.randrange(80, 120),) for _ in range(30)])
    visits = [(town, rng.randrange(50)) for town in ("delft", "gouda") for _ in range(6)]
    write(folder / "visits.csv", ["town", "home"], visits)
    (folder / "chain.csv").write_text("0.8,0.2\n0.3,0.7\n")
    for name, command in CASES.items():
        inputs = [folder / part if str(part).endswith(".csv") else part for part in command]
        budget = [] if name in ("noise", "streams") else ["--epsilon", 1]
        done(*inputs, *budget, "-o", folder / f"{name}.out.csv", "--quiet")
    return folder


def copied(released: Path, name: str, folder: Path) -> Path:
    """The certificate of a case, with its table, in a folder of its own."""
    for suffix in ("", ".certificate.json"):
        shutil.copy(released / f"{name}.out.csv{suffix}", folder / f"told.csv{suffix}")
    return folder / "told.csv.certificate.json"


def forged(certificate: Path, change: Change) -> None:
    """What a forger writes who knows the program: digests fit again."""
    document = json.loads(certificate.read_text())
    change(document)
    document.pop("written")
    table = certificate.with_name("told.csv")
    certificate.write_text(canonical(sealed(document, table)))


def problems(certificate: Path, *options: object) -> str:
    """What is wrong, by `--json`; the words of both ways to ask agree."""
    result = call("verify", certificate, "--json", *options)
    found = [str(problem) for problem in result.document["problems"]]
    assert result.code == (1 if found else 0), result.err
    assert result.document["passed"] == (not found)
    told = call("verify", certificate, *options)
    assert [line for line in told.out.splitlines() if line.startswith("PROBLEM")] == [
        f"PROBLEM {problem}" for problem in found
    ]
    return "\n".join(found)


@pytest.mark.parametrize("name", CASES)
def test_what_a_command_writes_can_be_verified(name: str, released: Path, tmp_path: Path) -> None:
    assert problems(copied(released, name, tmp_path)) == ""


def halved(name: str) -> Change:
    def change(document: Document) -> None:
        document[name] = document[name] / 100

    return change


def everywhere(document: Document) -> None:
    """The promise, wherever it is told."""
    document["lip"] = document["guarantees"][0]["epsilon"] = 0.01


def more_honest(document: Document) -> None:
    """A channel that tells the truth more often than its certificate says."""
    rows = document["evidence"]["channels"][0]["weights"]
    first = [int(part) for part in rows[0].split()]
    moved = first[1] // 2
    rows[0] = " ".join(str(part) for part in (first[0] + moved, first[1] - moved, *first[2:]))


def other_prior(document: Document) -> None:
    rows = document["evidence"]["priors"]
    parts = [float(part) for part in rows[0].split()]
    rows[0] = " ".join(repr(part) for part in (parts[1], parts[0], *parts[2:]))


def added(name: str, value: object) -> Change:
    return lambda document: document.__setitem__(name, value)


def dropped(name: str) -> Change:
    return lambda document: document.pop(name)


def within(part: str, name: str, value: object) -> Change:
    return lambda document: document[part].__setitem__(name, value)


def together(*changes: Change) -> Change:
    def change(document: Document) -> None:
        for each in changes:
            each(document)

    return change


def promising(**figures: float) -> Change:
    """Figures that look good, wherever they are told."""

    def change(document: Document) -> None:
        for guarantee in document["guarantees"]:
            guarantee |= {name: value for name, value in figures.items() if name in guarantee}
        for name in document:
            known = name in ("lip", "ldp") or name.startswith("delta")
            if known and document[name] is not None and document[name] != 0:
                document[name] = next(iter(figures.values()))

    return change


LEFT_OUT: dict[str, tuple[str, Change, str]] = {
    "evidence of public priors": (
        "symbols",
        together(added("evidence", None), promising(epsilon=0.001)),
        "evidence: missing, where priors are public",
    ),
    "priors that are public": (
        "symbols",
        within("evidence", "priors", []),
        "evidence.priors: missing, where they are public",
    ),
    "a prior that is said to be of the rows": (
        "symbols",
        together(
            added("evidence", None),
            within("asked", "learnt_from", "private"),
            promising(epsilon=0.001),
        ),
        "remarks: that the prior was learnt here must be said",
    ),
    "a prior that is said to be given": (
        "symbols",
        within("asked", "learnt_from", "given"),
        "asked.learnt_from: it must be `given` if, and only if",
    ),
    "reports that look at no prior": (
        "private-reports",
        together(added("evidence", None), added("frequencies", None), promising(epsilon=0.001)),
        "evidence: missing, where subset-selection looks at no prior",
    ),
    "noise that is said to be the best": (
        "noise",
        together(added("noise", "best"), added("evidence", None), promising(delta=1e-4)),
        "learnt_from: it cannot be 'nothing' with coupling 'none'",
    ),
    "a table that nothing was learnt from": (
        "noise",
        together(
            added("noise", "best"),
            added("evidence", None),
            added("learnt_from", "table"),
            promising(delta=1e-4),
        ),
        "fingerprint: the certificate says",
    ),
    "shells of another noise": (
        "noise",
        lambda d: d["evidence"].__setitem__("edges", [0.0, 3.0]),
        "evidence.edges[1]: the certificate says 3.0",
    ),
    "moments in no other file": (
        "streams",
        together(added("moments", 13), promising(alpha=0.01)),
        "moments: the certificate says 13; computed from the rows and the rules 12",
    ),
    "moments in a ledger": (
        "streams",
        together(added("moments", 13), within("asked", "ledger", True), promising(alpha=0.01)),
        "guarantees[0].alpha: the certificate says 0.01; the rows of this file alone leak",
    ),
    "fewer moments than rows": (
        "streams",
        together(added("moments", 3), within("asked", "ledger", True)),
        "moments: the certificate says 3, and the file holds 12",
    ),
    "what a series costs": (
        "series",
        together(added("cost", None), added("silence", None), added("gain", None)),
        "cost: the certificate says null",
    ),
}
"""What may be missing follows from what was asked: whoever leaves out more is found."""

CHEATS: dict[str, tuple[str, Change, str]] = {
    **LEFT_OUT,
    "lip from 1 to .01": ("symbols", halved("lip"), "lip: the certificate says"),
    "the promise wherever it stands": ("symbols", everywhere, "guarantees[0].epsilon: the"),
    "ldp": ("groups", halved("ldp"), "ldp: the certificate says"),
    "cost": ("numbers", halved("cost"), "cost: the certificate says"),
    "silence": ("symbols", halved("silence"), "silence: the certificate says"),
    "gain": ("symbols", halved("gain"), "gain: the certificate says"),
    "a set of priors": ("set", halved("lip"), "lip: the certificate says"),
    "rows": ("symbols", added("rows", 240), "rows: the certificate says 240"),
    "a more honest channel": ("symbols", more_honest, "lip: the certificate says"),
    "a prior that suits": ("groups", other_prior, "fingerprint: the certificate says"),
    "estimated shares": (
        "reports",
        lambda d: d["frequencies"].__setitem__("yes", [0.9, 0.01]),
        "frequencies.yes[0]: the certificate says 0.9",
    ),
    "a field that nobody knows": ("symbols", added("note", "0110"), "note: an unknown field"),
    "a field that is gone": ("symbols", dropped("never"), "never"),
    "a simulation": ("symbols", added("purpose", "simulation"), "purpose: a simulation"),
    "a remark that is gone": ("symbols", lambda d: d["remarks"].pop(), "remarks"),
    "what the loss is": ("response", added("loss", "hamming"), "cost: the certificate says"),
    "digits of what was learnt": ("private", added("cost", 0.26123), "cost: the certificate says"),
    "ldp of reports": ("private-reports", halved("ldp"), "ldp: the certificate says"),
    "noise": ("noise", lambda d: d.__setitem__("sigma", [9.0, 9.0]), "delta_without_correlation"),
    "delta": ("noise", halved("delta"), "delta: the certificate says"),
    "points of published values": ("noise", added("steps", [2.0**-9] * 2), "steps[0]: the"),
    "epsilon of a series": ("series", halved("epsilon"), "epsilon: the certificate says"),
    "cost of a series": ("series", halved("cost"), "cost: the certificate says"),
    "values of a series": ("series", added("values", 300), "values: the certificate says 300"),
    "leakage of a moment": (
        "streams",
        lambda d: d["guarantees"][0].__setitem__("alpha", 0.01),
        "guarantees[0].alpha: the certificate says 0.01",
    ),
    "streams": ("streams", added("streams", 9), "streams: the certificate says 9"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_careful_forger_is_found_by_the_field(cheat: str, released: Path, tmp_path: Path) -> None:
    name, change, message = CHEATS[cheat]
    certificate = copied(released, name, tmp_path)
    forged(certificate, change)
    result = call("verify", certificate)
    assert result.code in (1, 2)
    assert message in result.out + result.err


PROMISES = {
    "symbols": "the certificate fits",
    "noise": "the certificate fits",
    "series": "the certificate fits",
    "streams": "the certificate fits",
    "private-reports": "the certificate fits as far as it can be checked; NOT checked is its lip",
    "private": "nothing in it is contradicted, and NOT ONE figure of its promise could be checked",
}


@pytest.mark.parametrize("name", PROMISES)
def test_the_last_line_says_how_much_of_the_promise_was_checked(
    name: str, released: Path, tmp_path: Path
) -> None:
    certificate = copied(released, name, tmp_path)
    whole = PROMISES[name] == "the certificate fits"
    assert done("verify", certificate).out.splitlines()[-1] == PROMISES[name]
    document = done("verify", certificate, "--json").document
    assert document["promise_checked"] == all(document["promise"].values()) == whole
    report = tmp_path / "checked.json"
    strict = call("verify", certificate, "--require-promise", "--report", report)
    assert strict.code == (0 if whole else 1)
    assert ("lip: promised, and not computed again" in strict.out) == (not whole)
    assert done("verify-report", report).code == 0  # with what was required


def test_streams_that_go_on_are_held_to_no_less_than_each_file_leaks(tmp_path: Path) -> None:
    rng = random.Random(5)
    (tmp_path / "chain.csv").write_text("0.8,0.2\n0.3,0.7\n")
    rules = ("--stream", "town", "--value", "home", "--alpha", 1, "--quiet")
    for day in ("monday", "tuesday"):
        rows = [("delft", rng.randrange(50)) for _ in range(6)]
        write(tmp_path / f"{day}.csv", ["town", "home"], rows)
        files = ("--backward", tmp_path / "chain.csv", "--ledger", tmp_path / "town.ledger")
        output = tmp_path / f"{day}.out.csv"
        done("temporal", "release", tmp_path / f"{day}.csv", *rules, *files, "-o", output)
    first, second = (tmp_path / f"{d}.out.csv.certificate.json" for d in ("monday", "tuesday"))
    assert done("verify", first, "--json").document["promise_checked"]
    found = done("verify", second, "--json").document
    assert (found["passed"], found["promise_checked"]) == (True, False)
    assert "NOT ONE figure of its promise" in done("verify", second).out.splitlines()[-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (within("evidence", "note", 1), "evidence: Object contains unknown field `note`"),
        (within("evidence", "priors", ["0.50 0.25 0.25"]), "one way"),
        (lambda d: d["evidence"]["channels"][0]["weights"].__setitem__(0, "1 2 3"), "sum to 2**62"),
        (within("asked", "epsilon", 9.0), "fingerprint: the certificate says"),
        (within("asked", "hidden", 9.0), "asked: its fields must be"),
        (added("job", "bake"), "job: 'bake'"),
        (dropped("table"), "table: missing"),
    ],
)
def test_evidence_is_closed_and_written_in_one_way(
    change: Change, message: str, released: Path, tmp_path: Path
) -> None:
    certificate = copied(released, "symbols", tmp_path)
    document = json.loads(certificate.read_text())
    change(document)
    if "table" in document:
        forged(certificate, change)
    else:
        certificate.write_text(canonical(document))
    result = call("verify", certificate)
    assert result.code in (1, 2)
    assert message in result.out + result.err


def test_a_plain_edit_shows_even_where_nothing_can_be_computed(
    released: Path, tmp_path: Path
) -> None:
    certificate = copied(released, "private", tmp_path)
    text = certificate.read_text()
    certificate.write_text(text.replace('"cost": 0.', '"cost": 0.0', 1))
    assert "written: the fields are not those that were written" in problems(certificate)


@pytest.mark.parametrize(
    ("old", "new"), [('"delta": 0.0', '"delta": 0.00'), ('{\n  "format"', '{"format"')]
)
def test_there_is_one_way_to_write_a_certificate(
    old: str, new: str, released: Path, tmp_path: Path
) -> None:
    certificate = copied(released, "symbols", tmp_path)
    certificate.write_text(certificate.read_text().replace(old, new, 1))
    assert "format: the text is not the one way to write it" in problems(certificate)


def test_a_field_that_stands_twice_shows(released: Path, tmp_path: Path) -> None:
    certificate = copied(released, "symbols", tmp_path)
    text = certificate.read_text()
    certificate.write_text(text.replace('  "job"', '  "lip": 0.01,\n  "job"', 1))
    assert "format: the text is not the one way to write it" in problems(certificate)


TABLES: dict[str, tuple[str, Callable[[list[str]], list[str]], str]] = {
    "another answer": ("symbols", lambda ls: [*ls[:-1], "perhaps"], "row 120 holds nothing that"),
    "a row less": ("symbols", lambda ls: ls[:-1], "rows: the certificate says 120"),
    "another column": (
        "symbols",
        lambda ls: [f"{ls[0]},true", *(f"{line},1" for line in ls[1:])],
        "table: the file holds more than its columns",
    ),
    "a space at an end": (
        "symbols",
        lambda ls: [*ls[:-1], f'"{ls[-1]}"'],
        "table: the file holds more than its columns",
    ),
    "a number with a digit more": ("numbers", lambda ls: [*ls[:-1], f"{ls[-1]}0"], "row 120"),
    "a value between the points": (
        "noise",
        lambda ls: [*ls[:-1], "170.1234567891,75.5"],
        "row 60 of 'height' is no point of the lattice",
    ),
    "a report in another order": (
        "reports",
        lambda ls: [ls[0], *('"[""yes"",""maybe""]"' for _ in ls[1:])],
        "row 1 is no report of the mechanism",
    ),
    "a moment that cost less": (
        "streams",
        lambda ls: [*ls[:-1], ls[-1].rpartition(",")[0] + ",0.001"],
        "table:",
    ),
}


@pytest.mark.parametrize("cheat", TABLES)
def test_a_table_that_was_changed_shows_with_and_without_its_digest(
    cheat: str, released: Path, tmp_path: Path
) -> None:
    name, change, message = TABLES[cheat]
    certificate = copied(released, name, tmp_path)
    table = certificate.with_name("told.csv")
    table.write_text("\n".join(change(table.read_text().splitlines())) + "\n")
    assert "table.sha256: the table is not the one" in problems(certificate)
    forged(certificate, lambda document: None)
    assert message in problems(certificate)


def test_a_prior_of_private_rows_must_not_stand_in_a_certificate(
    released: Path, tmp_path: Path
) -> None:
    certificate = copied(released, "symbols", tmp_path)
    forged(certificate, within("asked", "learnt_from", "private"))
    refused(call("verify", certificate), "must not be told")


def test_certificates_of_private_rows_hold_few_digits_and_no_digest_of_them(
    released: Path,
) -> None:
    """With all digits, whoever knows every row but one could compute the last."""
    document = json.loads((released / "private.out.csv.certificate.json").read_text())
    assert document["evidence"] is None
    for name in ("lip", "ldp", "cost", "silence", "gain"):
        assert float(f"{document[name]:.3g}") == document[name]
    raw = (released / "survey.csv").read_text()
    digests = [value for value in _leaves(document) if isinstance(value, str) and len(value) == 64]
    # The table that left, the text of the certificate, and what was asked: nothing of the rows.
    assert len(digests) == 3
    again = json.loads((released / "private-reports.out.csv.certificate.json").read_text())
    assert again["evidence"]["priors"] == []
    assert again["evidence"]["groups"] is None
    assert raw not in json.dumps(document)


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in _leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


@pytest.mark.parametrize("name", ["symbols", "groups", "response"])
def test_leakages_are_those_of_the_integers_by_brute_force(name: str, released: Path) -> None:
    """Fractions, from nothing but the JSON: the figures are rounded up, and by a hair."""
    document = json.loads((released / f"{name}.out.csv.certificate.json").read_text())
    leaked, local = Fraction(1), Fraction(1)
    for prior, channel in zip(
        document["evidence"]["priors"], document["evidence"]["channels"], strict=True
    ):
        belief = [Fraction(float(part)) for part in prior.split()]
        rows = _weights(channel)
        for column in zip(*rows, strict=True):
            mean = sum(b * w for b, w in zip(belief, column, strict=True)) / sum(belief)
            ratios = [Fraction(weight) / mean for weight in column]
            leaked = max(leaked, *ratios, *(1 / ratio for ratio in ratios))
            local = max(local, Fraction(max(column), min(column)))
    for stated, exact in ((document["lip"], leaked), (document["ldp"], local)):
        assert math.log(exact) <= stated <= math.log(exact) + 1e-9


def _weights(channel: Document) -> list[list[int]]:
    if channel["weights"] is not None:
        return [[int(part) for part in row.split()] for row in channel["weights"]]
    shared = [int(part) for part in channel["shared"].split()]
    rest = WHOLE - sum(shared)
    targets = [int(part) for part in channel["target"].split()]
    return [
        [weight + rest * (place == target) for place, weight in enumerate(shared)]
        for target in targets
    ]


def test_an_old_certificate_is_told_to_be_one(released: Path, tmp_path: Path) -> None:
    certificate = copied(released, "symbols", tmp_path)
    document = json.loads(certificate.read_text())
    for name in ("format", "program", "job", "coins", "commitment", "asked", "evidence", "table"):
        document.pop(name)
    document.pop("written")
    certificate.write_text(json.dumps(document))
    refused(call("verify", certificate), "a certificate of an earlier program: it lacks")


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000, '{"format": 1}', "\x00"])
def test_what_is_no_certificate_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "told.csv.certificate.json"
    path.write_text(content)
    refused(call("verify", path))


def test_a_plan_is_for_the_audit(tmp_path: Path) -> None:
    refused(call("verify", tmp_path / "private.csv.plan.json"), "sfumato audit")
