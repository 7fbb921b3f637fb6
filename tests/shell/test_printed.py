"""What commands print for people is never below what they write for machines."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato
from tests.shell.releasing import STEP
from tests.shell.running import done
from tests.shell.tables import table, walk, write

SOURCE = Path(sfumato.__file__).parent
AMOUNTS = {"sip", "ldp", "lip", "alpha", "delta", "epsilon", "leakage", "guarantee", "gamma"}
BACK = "0.8,0.2\n0.11,0.89\n"


def numbers(text: str) -> list[float]:
    """All numbers of a text, in their order."""
    return [float(each) for each in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def after(text: str, words: str) -> float:
    """The first number after some words."""
    return numbers(text[text.index(words) + len(words) :])[0]


def tabbed(text: str, head: str) -> Iterable[dict[str, str]]:
    """The rows of a printed table by the names of its columns."""
    lines = [line.split("\t") for line in text.splitlines()]
    start = next(place for place, line in enumerate(lines) if line[0] == head)
    for line in lines[start + 1 :]:
        if len(line) != len(lines[start]):
            return
        yield dict(zip(lines[start], line, strict=True))


def near_above(printed: float, exact: float, digits: int) -> None:
    """Rounded up in the last digit that is shown, and in no other."""
    assert exact <= printed <= exact * (1 + 10.0 ** (1 - digits)) + 1e-300


@pytest.fixture
def people(tmp_path: Path) -> Path:
    body = np.random.default_rng(5).multivariate_normal([170, 75], [[64, 60], [60, 144]], 80)
    return write(tmp_path / "people.csv", ["height", "weight"], body.tolist())


def test_temporal_leakage_prints_no_less_than_it_computes(tmp_path: Path) -> None:
    back = tmp_path / "back.csv"
    back.write_text(BACK)
    for epsilon in (0.1, 0.137, 0.21, 0.3):
        asked = ("--backward", back, "--epsilon", epsilon, "--steps", 7, "--window", 3)
        exact = done("temporal", "leakage", *asked, "--json").document
        said = done("temporal", "leakage", *asked).out
        near_above(after(said, "any single moment:"), exact["event"], 6)
        near_above(after(said, "whole stream:"), exact["user"], 6)
        near_above(after(said, "moments together:"), exact["window"], 6)
        near_above(after(said, ": past"), exact["sup_backward"], 6)
        for row, total in zip(tabbed(said, "release"), exact["tpl"], strict=True):
            near_above(float(row["both (TPL)"]), total, 6)
        # The sentence says what the table says.
        assert after(said, "any single moment:") == max(
            float(row["both (TPL)"]) for row in tabbed(said, "release")
        )


def test_plan_prints_no_less_than_it_computes(model: Path) -> None:
    asked = ("plan", "--model", model, "--epsilon", 0.3, *STEP, "--steps", 7)
    exact = done(*asked, "--json").document["methods"]
    for row, one in zip(tabbed(done(*asked).out, "method"), exact, strict=True):
        near_above(float(row["SIP"]), float(one["sip"]), 4)
        near_above(float(row["LDP"]), float(one["ldp"]), 4)


def test_plan_of_batches_prints_no_less_than_it_computes(model: Path) -> None:
    asked = ("plan", "--model", model, "--epsilon", 0.3, "--steps", 6, "--batch", "1,2")
    exact = done(*asked, "--json").document["batches"]
    for row, one in zip(tabbed(done(*asked).out, "batch"), exact, strict=True):
        near_above(float(row["SIP"]), float(one["sip"]), 4)
        near_above(float(row["LDP"]), float(one["ldp"]), 4)


def test_compare_prints_no_less_than_it_computes(tmp_path: Path) -> None:
    counts = write(tmp_path / "counts.csv", ["cnt"], [[30 + place % 7] for place in range(40)])
    budget = ("--sensitivity", 1, "--epsilon", 1.23456789)
    asked = ("compare", counts, "--value", "cnt", *budget, "--methods", "fast", "--runs", 2)
    exact = {one["method"]: one for one in done(*asked, "--json").document["methods"]}
    rows = list(tabbed(done(*asked).out, "method"))
    assert len(rows) == len(exact)
    for row in rows:
        one = exact[row["method"].rstrip("*")]
        assert float(row["epsilon"]) >= one["epsilon"]
        assert float(row["delta"]) >= one["delta"]


def test_disclosure_prints_no_less_than_it_computes(people: Path) -> None:
    noise = ("--noise", "gaussian", "--sigma", 7.3, "--coupling", "gaussian")
    asked = ("disclosure", "-t", people, "-c", "height,weight", "--accuracy", 2, *noise)
    exact = done(*asked, "--json").document
    said = done(*asked, "--papers").out
    near_above(after(said, "blind guess\t"), exact["delta_before"], 5)
    near_above(after(said, "values alone\t"), exact["delta_without_correlation"], 5)
    between = said[said.index("between ") :]
    assert numbers(between)[0] <= exact["delta_low"]
    near_above(numbers(between)[1], exact["delta_high"], 5)
    near_above(after(said, "gamma (MDDP Definition 6):"), exact["gamma"], 5)


def test_publish_and_privatize_print_no_less_than_they_certify(
    tmp_path: Path, people: Path, key: Path
) -> None:
    noise = ("--noise", "gaussian", "--sigma", 7.1, "--coupling", "gaussian", "--key-file", key)
    columns = ("-c", "height,weight", "--accuracy", 2)
    asked = ("publish", "-t", people, *columns, *noise, "-o", tmp_path / "noisy.csv")
    exact = done(*asked, "--json").document
    said = done(*asked).out
    near_above(after(said, "who knows"), exact["delta"], 4)
    near_above(after(said, "with probability"), exact["delta_before"], 4)

    words = write(tmp_path / "words.csv", ["word"], [[word] for word in "aaaaabbbccd" * 9])
    hidden = ("--column", "word", "--epsilon", 0.7, "--key-file", key, "--order", "kept")
    again = ("privatize", words, *hidden, "-o", tmp_path / "told.csv")
    exact = done(*again, "--json").document
    said = done(*again).out
    near_above(after(said, "LIP("), exact["lip"], 6)
    near_above(after(said, "LDP("), exact["ldp"], 6)


def test_design_release_and_audit_print_no_less_than_they_compute(
    tmp_path: Path, model: Path
) -> None:
    asked = ("design", "--belief", "0.21,0.32,0.47", "--epsilon", 0.7)
    exact, said = done(*asked, "--json").document, done(*asked).out
    near_above(after(said, "SIP("), exact["sip"], 6)
    near_above(after(said, "LDP("), exact["ldp"], 6)
    near_above(after(said, "expected loss"), exact["cost"], 6)

    live = table(tmp_path / "live.csv", walk(4, rows=30))
    output = tmp_path / "private.csv"
    said = done("release", live, "-m", model, "--epsilon", 0.3, *STEP, "-o", output).err
    audited = done("audit", output, "-m", model, "--json").document
    streams: dict[str, Any] = audited["streams"]
    assert after(said, "SIP(") >= max(one["sip"] for one in streams.values()) * (1 - 1e-9)
    for row in tabbed(done("audit", output, "-m", model).out, "stream"):
        near_above(float(row["SIP"]), streams[row["stream"]]["sip"], 5)
        near_above(float(row["LDP"]), streams[row["stream"]]["ldp"], 5)
        near_above(float(row["worst step"]), streams[row["stream"]]["worst_step"], 5)


def test_no_text_of_the_package_rounds_an_amount_of_leakage_to_nearest() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FormattedValue) or node.format_spec is None:
                continue
            words = set(re.findall(r"\w+", ast.unparse(node.value)))
            # Names of curves in a study of a paper are the paper's own budgets, not promises.
            named = AMOUNTS - {"epsilon", "delta"} if "studies" in path.parts else AMOUNTS
            if words & named or any(word.startswith("delta_") for word in words):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)}")
    assert found == []
