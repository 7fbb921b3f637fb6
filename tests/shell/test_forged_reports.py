"""Reports that somebody wrote anew, digest and all: what is public of them is found again."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.store.attestation import canonical, written_digest
from tests.shell.running import call, done, refused
from tests.shell.tables import PLACES, table, walk, write

Document = dict[str, Any]
Edit = Callable[[Document], object]


def forged(report: Path, edit: Edit) -> Path:
    """The report with an edit, as whoever knows the program writes it."""
    document = json.loads(report.read_text())
    edit(document)
    document["written"] = written_digest("report", document)
    away = report.with_name("forged.json")
    away.write_text(canonical(document))
    return away


def put(*path: str | int, value: object) -> Edit:
    def edit(document: Any) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return edit


@pytest.fixture(scope="module")
def audits(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    """A release with a key, and reports of its audit at three levels."""
    folder = tmp_path_factory.mktemp("audits")
    live = table(folder / "live.csv", walk(11, rows=40))
    shutil.copy(model, folder / "city.model")
    done("key", "new", folder / "year.key")
    asked = ("-m", folder / "city.model", "--epsilon", 0.8, "--method", "optimal", "--quiet")
    keyed = ("--key-file", folder / "year.key")
    done("release", live, *asked, *keyed, "-o", folder / "private.csv")
    held = ("--against", live)
    for name, more in (("anyone", ()), ("values", held), ("key", (*held, *keyed))):
        audit = ("audit", folder / "private.csv", "-m", folder / "city.model", *more)
        done(*audit, "--report", folder / f"{name}.json", "--quiet")
    return folder


def stream(name: str, value: object) -> Edit:
    def edit(document: Document) -> None:
        next(iter(document["streams"].values()))[name] = value

    return edit


FORGED: dict[str, tuple[Edit, str]] = {
    "sip": (put("totals", "largest_sip", value=0.5), "totals.largest_sip: the report says 0.5"),
    "ldp": (put("totals", "largest_ldp", value=1.0), "totals.largest_ldp: the report says 1.0"),
    "rows": (put("totals", "rows", value=4000), "totals.rows: the report says 4000"),
    "streams": (put("totals", "streams", value=7), "totals.streams: the report says 7"),
    "withheld": (put("totals", "withheld", value=3), "totals.withheld: the report says 3"),
    "repeated": (put("totals", "repeated", value=3), "totals.repeated: the report says 3"),
    "head": (put("totals", "ledger_head", value="0"), "totals.ledger_head: the report says"),
    "more totals": (put("totals", "quality", value=1), "totals.quality: an unknown field"),
    "problem count": (put("totals", "problems", value=1), "totals.problems: the report says"),
    "no streams": (put("streams", value={}), ": missing"),
    "steps": (stream("steps", 4), ".steps: the report says 4"),
    "stream sip": (stream("sip", 0.5), ".sip: the report says 0.5"),
    "stream ldp": (stream("ldp", 0.5), ".ldp: the report says 0.5"),
    "composed": (stream("composed", 0.5), ".composed: the report says 0.5"),
    "worst step": (stream("worst_step", 0.1), ".worst_step: the report says 0.1"),
    "one value": (stream("one_value", 0.1), ".one_value: the report says 0.1"),
    "promise": (put("promise", 0, value="promise: SIP(0.01)"), "promise[0]: the report says"),
    "no promise": (put("promise", value=[]), "promise: the report says []"),
    "level": (put("level", value="holder of everything"), "level: the report says"),
    "failed": (put("passed", value=False), "passed: "),
    "problems": (put("problems", value=["9 of kind rows: told to the holder"]), "problems"),
    "free words": (put("problems", value=["all is well"]), "problems"),
    "checked": (lambda d: d["checked"].pop(0), "checked: "),
    "not checked": (put("not_checked", value=[]), "not_checked: "),
    "no digest": (lambda d: d["files"][0].update(name=None, sha256=None), "output: it has no"),
    "no model": (lambda d: d["files"].pop(2), "files: model: missing"),
    "two models": (lambda d: d["files"].append(d["files"][2]), "model: there is one at most"),
    "other files": (put("files", 1, "role", value="spice"), "audit reads no spice"),
}


@pytest.mark.parametrize("level", ["anyone", "values", "key"])
def test_a_report_fits_as_far_as_its_files_are_at_hand(audits: Path, level: str) -> None:
    report = audits / f"{level}.json"
    plain, told = done("verify-report", report).out, done("verify-report", report, "--json")
    assert told.document["passed"] and told.document["verdict"]
    if level == "anyone":
        assert plain.endswith("the report fits\n")
        assert told.document["result"] == "fits" and not told.document["unchecked"]
        return
    needs = "the true values" if level == "values" else "the true values and the key"
    assert plain.endswith(f"the report is not contradicted: the rest needs {needs}\n")
    assert told.document["result"] == "not contradicted"
    due = ("level: ", "passed, beyond", "problems of kinds values and coins: ", "checked '")
    for name, line in zip(due, told.document["unchecked"], strict=False):
        assert line.startswith(name) and line.endswith(f": needs {needs}")


@pytest.mark.parametrize(
    ("what", "level"),
    [
        *((what, "values") for what in FORGED),
        *((what, "anyone") for what in ("checked", "not checked", "level", "no digest", "steps")),
    ],
)
def test_no_public_figure_of_a_report_can_be_forged(audits: Path, what: str, level: str) -> None:
    edit, message = FORGED[what]
    result = call("verify-report", forged(audits / f"{level}.json", edit))
    assert result.code == 1
    assert message in result.out
    assert result.out.endswith("the report does NOT fit\n")


def test_a_level_is_not_claimed_without_its_files(audits: Path) -> None:
    claimed = json.loads((audits / "key.json").read_text())["level"]
    result = call("verify-report", forged(audits / "values.json", put("level", value=claimed)))
    assert result.code == 1 and "level: the report says" in result.out


def test_with_the_secret_files_all_is_computed_again(audits: Path) -> None:
    values = ("--against", audits / "live.csv")
    key = (*values, "--key-file", audits / "year.key")
    for name, held in (("values", values), ("key", key)):
        assert done("verify-report", audits / f"{name}.json", *held).out.endswith("report fits\n")
    edit = put("checked", 1, value="4,000 outputs beside true values: no alarm at 0.0001")
    away = forged(audits / "values.json", edit)
    assert "4,000 outputs" in done("verify-report", away).out
    result = call("verify-report", away, *values)
    assert result.code == 1 and "checked[1]: the report says" in result.out
    refused(call("verify-report", audits / "key.json", *values), "the true values and the key")
    refused(call("verify-report", audits / "anyone.json", *values), "public files alone")
    refused(call("verify-report", audits / "key.json", *key[2:]), "--against")


def test_a_failure_is_not_forged_into_a_pass(audits: Path, tmp_path: Path) -> None:
    """A row that costs another price: anyone sees it. A turned coin: the holder alone."""
    for name in ("live.csv", "city.model", "private.csv.plan.json", "year.key"):
        shutil.copy(audits / name, tmp_path / name)
    text = (audits / "private.csv").read_text()
    edited, report = tmp_path / "private.csv", tmp_path / "audit.json"
    audit = ("audit", edited, "-m", tmp_path / "city.model", "--against", tmp_path / "live.csv")
    head, first, *rest = text.splitlines(keepends=True)
    edited.write_text("".join([head, first.replace("0.", "0.0", 1), *rest]))
    assert call(*audit, "--report", report, "--quiet").code == 1
    assert done("verify-report", report, "--json").document["result"] == "not contradicted"

    def passing(document: Document) -> None:
        document["passed"], document["problems"] = True, []
        document["totals"]["problems"] = 0

    result = call("verify-report", forged(report, passing))
    assert result.code == 1
    assert "passed: it must be false" in result.out and "the public files alone have" in result.out

    edited.write_text(text)
    others = dict(zip(PLACES, PLACES[1:] + PLACES[:1], strict=True))
    table(tmp_path / "live.csv", [(who, others[place]) for who, place in walk(11, rows=40)])
    keyed = ("--key-file", tmp_path / "year.key")
    assert call(*audit, *keyed, "--report", report, "--quiet").code == 1
    assert done("verify-report", report, "--json").document["verdict"] is False
    away = forged(report, passing)
    assert "not contradicted" in done("verify-report", away).out
    result = call("verify-report", away, "--against", tmp_path / "live.csv", *keyed)
    assert result.code == 1 and "passed: the report says true" in result.out


def test_rows_that_had_to_be_withheld_do_not_contradict_their_holder(
    audits: Path, tmp_path: Path
) -> None:
    rows = walk(11, rows=40)
    rows[5] = (rows[5][0], "nowhere")
    live, model = table(tmp_path / "live.csv", rows), tmp_path / "city.model"
    shutil.copy(audits / "city.model", model)
    asked = ("--epsilon", 0.8, "--method", "optimal", "--when-unknown", "suppress", "--quiet")
    done("release", live, "-m", model, *asked, "-o", tmp_path / "private.csv")
    audit, report = ("audit", tmp_path / "private.csv", "-m", model), tmp_path / "audit.json"
    assert call(*audit, "--quiet").code == 1
    done(*audit, "--against", live, "--report", report, "--quiet")
    assert "not contradicted" in done("verify-report", report).out
    assert done("verify-report", report, "--against", live).out.endswith("the report fits\n")


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A column with a public prior, and the report of a `verify` beside its true rows."""
    folder, rng = tmp_path_factory.mktemp("verified"), random.Random(7)
    for name in ("survey", "public"):
        write(folder / f"{name}.csv", ["answer"], [(rng.choice("ynnm"),) for _ in range(90)])
    told = ("privatize", folder / "survey.csv", "-c", "answer", "--epsilon", 1, "--quiet")
    done(*told, "--history", folder / "public.csv", "-o", folder / "told.csv")
    certificate = folder / "told.csv.certificate.json"
    held = ("--against", folder / "survey.csv", "--report", folder / "checked.json")
    done("verify", certificate, *held, "--quiet")
    return folder


def test_a_report_of_verify_beside_true_rows_is_found_again(verified: Path) -> None:
    report, held = verified / "checked.json", ("--against", verified / "survey.csv")
    assert "not contradicted: the rest needs the true values" in done("verify-report", report).out
    assert done("verify-report", report, *held).out.endswith("the report fits\n")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put("totals", "lip", value=0.01), "totals.lip: the report says 0.01"),
        (put("totals", "ldp", value=0.01), "totals.ldp: the report says 0.01"),
        (put("totals", "rows", value=9000), "totals.rows: the report says 9000"),
        (put("totals", "purpose", value="x"), "totals.purpose: the report says"),
        (put("level", value="holder of the true rows and the key"), "level: the report says"),
        (put("passed", value=False), "passed: it must be true"),
        (put("problems", value=["fine"]), "problems: the report must tell how many"),
        (put("promise", value=["SIP(0)"]), "promise: the report says"),
        (put("not_checked", value=[]), "not_checked: "),
        (put("command", value=["verify"]), "command"),
        (lambda d: d["files"].pop(0), "files: certificate: missing"),
    ],
)
def test_a_report_of_verify_cannot_be_forged(verified: Path, edit: Edit, message: str) -> None:
    result = call("verify-report", forged(verified / "checked.json", edit))
    assert result.code != 0
    assert message in result.out + result.err
