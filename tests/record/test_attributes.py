"""What is known of columns: of whom it is said, and what cannot be asked."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.record.attributes import known_attributes
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture

LINE = {"a": np.arange(9.0), "b": 2 * np.arange(9.0)}
NORMAL = JointMixture.normal([0.0], [[4.0]])


def test_remarks_are_made_upon_people_and_not_upon_what_was_learnt_from() -> None:
    people = {"a": np.array([1.0, 99.0, 98.0]), "b": np.array([7.0, 1.0, 2.0])}
    assert known_attributes(LINE, "b = 2*a").remarks == ()
    outside, off = known_attributes(LINE, "b = 2*a", people=people).remarks
    assert outside.startswith("values of 'a' lie outside their domain")
    assert "do not satisfy the equation of 'b'" in off
    free = known_attributes(LINE, "none", domains={"b": (0.0, 5.0)}, people=people).remarks
    assert [remark[:13] for remark in free] == ["values of 'b'"]


def test_without_equations_only_given_domains_limit_what_is_known() -> None:
    assert known_attributes(LINE, "none").domains == {}
    assert known_attributes(LINE, "none", domains={"a": (-1, 10)}).domains == {"a": (-1.0, 10.0)}
    assert known_attributes({"a": LINE["a"]}, "gaussian").domains == {}


@pytest.mark.parametrize("column", [[4.5], [4.5] * 20])
def test_one_person_and_people_alike_teach_nothing(column: list[float]) -> None:
    options: dict[str, Any] = {"accuracy": 2.0, "sigma": 6.0}
    blind: dict[str, Any] = options | {"coupling": "none"}
    assert len(sf.publish({"x": column}, ["x"], coupling=NORMAL, **options).values) == len(column)
    for coupling in ("gaussian", "mixture", "kernel"):
        with pytest.raises(SfumatoError, match=r"needs 20 rows|x must be a column that varies"):
            sf.publish({"x": column}, ["x"], coupling=coupling, **options)
    with pytest.raises(InvalidParameter, match="noise must come with columns that vary"):
        sf.publish({"x": column}, ["x"], noise="best", **blind)
    with pytest.raises(InvalidParameter, match="x must be a column that varies"):
        sf.disclosure({"x": column}, ["x"], **blind)
    known = sf.disclosure({"x": column}, ["x"], domains={"x": (0.0, 9.0)}, **blind)
    assert known.delta == pytest.approx(2 / (np.sqrt(3) * 6))


@pytest.mark.parametrize(
    "coupling", [5, None, [], ["b = 2*a"], [NORMAL], np.eye(2), {"b = 2*a": "b"}]
)
def test_a_coupling_of_no_kind_is_refused(coupling: Any) -> None:
    with pytest.raises(InvalidParameter, match="coupling must be a text, a JointMixture"):
        known_attributes(LINE, coupling)


@pytest.mark.parametrize("domain", [5, (1, 2, 3), "12", ("a", "b"), (None, 1), [(1, 2)]])
def test_a_domain_that_is_no_interval_is_refused(domain: Any) -> None:
    with pytest.raises(InvalidParameter, match="domain"):
        known_attributes(LINE, "none", domains={"a": domain})


def test_equations_name_published_columns_alone() -> None:
    for text in ("b = c", "b = a + c", "b ~ a,c", "c ~ a"):
        with pytest.raises(InvalidParameter, match="coupling must name columns among a, b; got"):
            known_attributes(LINE, text)
    model = FullCoupling.equation("c = 2*a", {"a": (0, 9), "c": (0, 18)})
    with pytest.raises(InvalidParameter, match="coupling must name columns among a, b; got 'c'"):
        known_attributes(LINE, model)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": "ab"}, "columns must be a list of columns, not one text"),
        ({"columns": []}, "columns must name one column or more"),
        ({"keep": "c"}, "keep must be a list of columns, not one text; got 'c'"),
        ({"keep": ["c", "c"]}, "keep must name every column once"),
        ({"keep": ["a"]}, "keep must not name a column that is released"),
        ({"target_delta": "x"}, "target_delta must be a number; got 'str'"),
        ({"target_delta": [0.1]}, "target_delta must be a number; got 'list'"),
        ({"noise": "best", "attacker": "x"}, "attacker must be a number; got 'str'"),
        ({"sigma": 1e9, "accuracy": 1e-3}, "accuracy must be at least sigma"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(options: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"columns": ["a", "b"], "accuracy": 1.0, "sigma": 3.0}
    given |= {"coupling": "none", **options}
    with pytest.raises(InvalidParameter, match=words):
        sf.publish({**LINE, "c": range(9)}, **given)
