import itertools
import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.coupling import FullCoupling, Interval
from tests.strategies import Floats

SECRET = 9151.25
REGRESSION = "weight = 261.88 - 7.35*height + 0.083*height**2"
BODY = FullCoupling.equation(REGRESSION, {"height": (30, 90), "weight": (50, 300)})
POUNDS = FullCoupling.equation("0.453*kg - lb = 0", {"kg": (0, 300), "lb": (0, 200)})
CIRCLE = FullCoupling.equation("x**2 + y**2 = 25", {"x": (-9, 9), "y": (-9, 9)})
TOTAL = FullCoupling.equation("a + b = c", dict.fromkeys("abc", (0.0, 10.0)))


def ring(at: Mapping[str, Floats]) -> Floats:
    return at["x"] ** 2 + at["y"] ** 2 - 25


RING = FullCoupling.function(ring, "xy", {"x": (-9, 9), "y": (-9, 9)})

EQUATIONS = [
    "x**2 + y**2 = 25",
    "x*y + sin = 1",
    "x**3 - 4*x = y",
    "exp(x/4) - y*x = 2",
    "log(abs(x) + 0.1) + y = 0.3*x*y",
    "1/(x + 2.03) = y/3",
    "sqrt(x + 4) = y - x/3",
    "x + y/2 = 1.25",
]
COUPLINGS = [
    FullCoupling.equation(text.replace("sin", "0.1*x**2"), {"x": (-6, 6), "y": (-6, 6)})
    for text in EQUATIONS
]
couplings = st.sampled_from(COUPLINGS)
names = st.sampled_from(["x", "y"])
values = st.floats(-6, 6, allow_subnormal=False)


def other(attribute: str) -> str:
    return "y" if attribute == "x" else "x"


@given(couplings, names, st.lists(values, min_size=1, max_size=6))
def test_solutions_satisfy_the_equation(
    coupling: FullCoupling, attribute: str, given_values: list[float]
) -> None:
    rest = {other(attribute): np.array(given_values)}
    found = coupling.solutions(attribute, rest)
    assert found.shape[0] == len(given_values)
    for column in found.T:
        real = ~np.isnan(column)
        at = {attribute: column[real], other(attribute): rest[other(attribute)][real]}
        if real.any():
            assert np.abs(coupling.residuals(at)).max() < 1e-9
            assert np.all((column[real] >= -6) & (column[real] <= 6))
    with np.errstate(invalid="ignore"):
        assert not np.any(np.diff(found, axis=1) <= 0)


@given(couplings, names, values)
def test_every_change_of_sign_is_a_solution(
    coupling: FullCoupling, attribute: str, value: float
) -> None:
    """A finer scan, by hand, knows no solution that was missed."""
    points = np.linspace(-6, 6, 4001)
    left = coupling.residuals({attribute: points, other(attribute): np.full(4001, value)})
    small = np.abs(left[:-1]) + np.abs(left[1:]) < 0.2  # not a pole
    crossing = np.flatnonzero((left[:-1] * left[1:] < 0) & small)
    found = coupling.solutions(attribute, {other(attribute): value})[0]
    for place in crossing:
        low, high = points[place] - 1e-9, points[place + 1] + 1e-9
        assert np.any((found >= low) & (found <= high))


@settings(max_examples=60)
@given(couplings, names, values, st.lists(st.floats(0.0, 5.0), min_size=4, max_size=4))
def test_narrowing_never_cuts_a_solution(
    coupling: FullCoupling, attribute: str, value: float, room: list[float]
) -> None:
    for root in coupling.solutions(attribute, {other(attribute): value})[0]:
        if math.isnan(root):
            continue
        at = {attribute: float(root), other(attribute): value}
        boxes = {
            "x": (at["x"] - room[0], at["x"] + room[1]),
            "y": (at["y"] - room[2], at["y"] + room[3]),
        }
        rest = coupling.narrowed(boxes, pieces=8)
        for name in ("x", "y"):
            low, high = rest[name]
            slack = 1e-7  # a double root is known no better
            assert low - slack <= at[name] <= high + slack
            assert max(-6, boxes[name][0]) <= low <= high <= min(6, boxes[name][1])


@settings(max_examples=40)
@given(st.tuples(*(st.tuples(st.floats(0, 10), st.floats(0, 10)) for _ in range(3))))
def test_a_sum_is_narrowed_to_what_subtraction_leaves(
    pairs: tuple[tuple[float, float], ...],
) -> None:
    a, b, c = ((min(pair), max(pair)) for pair in pairs)
    expected = {
        "a": (max(a[0], c[0] - b[1]), min(a[1], c[1] - b[0])),
        "b": (max(b[0], c[0] - a[1]), min(b[1], c[1] - a[0])),
        "c": (max(c[0], a[0] + b[0]), min(c[1], a[1] + b[1])),
    }
    slack = max(low - high for low, high in expected.values())
    if slack > 1e-6:
        with pytest.raises(InvalidParameter, match="hold a solution of 'a \\+ b = c'"):
            TOTAL.narrowed({"a": a, "b": b, "c": c})
    elif slack < 0:
        rest = TOTAL.narrowed({"a": a, "b": b, "c": c})
        for name, (low, high) in expected.items():
            assert rest[name] == pytest.approx((low, high), abs=2e-5)
            assert rest[name][0] <= low <= high <= rest[name][1]


def test_the_papers_regression_is_solved_both_ways() -> None:
    height = np.linspace(45.0, 90.0, 2001)
    weight = BODY.solve("weight", {"height": height})
    assert np.allclose(weight, 261.88 - 7.35 * height + 0.083 * height**2, rtol=1e-14)
    assert np.allclose(BODY.solve("height", {"weight": weight}, near=90.0), height, atol=1e-11)
    turning = 7.35 / (2 * 0.083)
    mirrored = BODY.solve("height", {"weight": weight[:500]}, near=30.0)
    assert np.allclose(mirrored, 2 * turning - height[:500], atol=1e-9)


def test_the_papers_regression_is_narrowed_to_its_turning_point() -> None:
    rest = BODY.narrowed({})
    assert rest["weight"] == pytest.approx((99.16162650602411, 272.68), abs=0.02)
    assert rest["weight"][0] <= 99.16162650602411
    assert rest["weight"][1] >= 272.68
    rest = BODY.narrowed({"height": (60, 70), "weight": (100, 140)})
    assert rest["weight"] == pytest.approx((119.68, 140.0), abs=1e-3)
    assert rest["height"] == pytest.approx((60.0, 66.458835), abs=1e-4)


def test_linear_couplings_go_both_ways() -> None:
    kg = np.array([0.0, 55.5, 300.0])
    assert np.allclose(POUNDS.solve("lb", {"kg": kg}), 0.453 * kg, atol=1e-12)
    assert np.allclose(POUNDS.solve("kg", {"lb": 0.453 * kg}), kg, atol=1e-12)
    assert POUNDS.narrowed({"kg": (50, 60)})["lb"] == pytest.approx((22.65, 27.18), abs=1e-3)
    assert POUNDS.slopes("lb", "kg", {"kg": 50, "lb": 22.65}) == pytest.approx(0.453)


@pytest.mark.parametrize("circle", [CIRCLE, RING])
def test_a_circle_has_two_roots_one_or_none(circle: FullCoupling) -> None:
    x = np.array([3.0, 0.0, 5.0, -5.0, 5.1, 1.7])
    found = circle.solutions("y", {"x": x})
    assert np.allclose(found[:2], [[-4, 4], [-5, 5]], atol=1e-12)
    assert np.allclose(found[2:4, 0], 0.0, atol=1e-6)
    assert np.all(np.isnan(found[2:4, 1])) and np.all(np.isnan(found[4]))
    assert np.allclose(found[5], [-math.sqrt(25 - 1.7**2), math.sqrt(25 - 1.7**2)], atol=1e-13)
    assert circle.solve("y", {"x": [3.0, 3.0]}, near=[1.0, -1.0]).tolist() == pytest.approx([4, -4])
    assert circle.slopes("y", "x", {"x": 3.0, "y": [4.0, -4.0]}) == pytest.approx([-0.75, 0.75])


def test_close_roots_and_touching_ones_are_found() -> None:
    domains = {"x": (-3.1, 4.3), "y": (-1.0, 1.0)}
    touching = FullCoupling.equation("(x - 1.2345)**2 = y", domains)
    found = touching.solutions("x", {"y": [0.0, 1e-8, 0.25, -1e-6]})
    assert np.allclose(found[0, 0], 1.2345, atol=1e-6) and np.isnan(found[0, 1])
    assert np.allclose(found[1], [1.2344, 1.2346], atol=1e-9)
    assert np.allclose(found[2], [0.7345, 1.7345], atol=1e-12)
    assert np.all(np.isnan(found[3]))


def test_poles_and_jumps_are_no_roots() -> None:
    pole = FullCoupling.equation("1/x = y", {"x": (-3, 3), "y": (-3, 3)})
    found = pole.solutions("x", {"y": [0.0, 1.0, -2.0]})
    assert np.allclose(found, [[np.nan], [1.0], [-0.5]], equal_nan=True)
    odd = FullCoupling.equation("1/(x - 0.123) = y", {"x": (-3, 3), "y": (-3, 3)})
    assert np.all(np.isnan(odd.solutions("x", {"y": 0.0})))
    step = FullCoupling.function(
        lambda at: np.where(at["x"] > 0.7, 1.0, -1.0) + 0 * at["y"],
        ["x", "y"],
        {"x": (-3, 3), "y": (-3, 3)},
    )
    assert np.all(np.isnan(step.solutions("x", {"y": 0.0})))


def test_roots_where_the_equation_begins_to_be_defined_are_found() -> None:
    root = FullCoupling.equation("2*sqrt(x - 0.3) = y", {"x": (-3, 3), "y": (-1, 3)})
    y = np.array([0.0, 1e-3, 0.1, 2.0])
    assert np.allclose(root.solve("x", {"y": y}), 0.3 + y**2 / 4, atol=1e-12)
    logarithm = FullCoupling.equation("log(x) = y", {"x": (-3, 3), "y": (-30, 3)})
    assert np.allclose(logarithm.solve("x", {"y": [-25.0, -9.0]}), np.exp([-25, -9]), rtol=1e-9)


def test_a_solution_at_the_end_of_a_domain_counts_despite_rounding() -> None:
    tenth = FullCoupling.equation("c = a + b", {"a": (0, 1), "b": (0, 1), "c": (0, 0.3)})
    assert tenth.solve("c", {"a": 0.1, "b": 0.2}).tolist() == [0.3]
    implicit = FullCoupling.equation("c - a - b = 0", {"a": (0, 1), "b": (0, 1), "c": (0, 0.3)})
    assert implicit.solve("c", {"a": 0.1, "b": 0.2}) == pytest.approx([0.3])


def test_three_attributes_are_solved_for_each() -> None:
    at = {"a": np.array([1.0, 2.0]), "b": np.array([3.5, 4.5]), "c": np.array([4.5, 6.5])}
    assert np.array_equal(TOTAL.residuals(at), [0.0, 0.0])
    for name in "abc":
        rest = {key: column for key, column in at.items() if key != name}
        assert np.allclose(TOTAL.solve(name, rest), at[name], atol=1e-14)
        TOTAL.check_solvable(name)
    for one, two in itertools.permutations("ab"):
        assert TOTAL.slopes(one, two, at) == pytest.approx([-1.0, -1.0])
    assert TOTAL.solve("c", {"a": [1.0, 2.0], "b": 3.0}).tolist() == [4.0, 5.0]


def test_rows_beyond_one_batch_are_solved_alike() -> None:
    x = np.linspace(-4.9, 4.9, 2500)
    x[2000] = 6.0
    found = CIRCLE.solutions("y", {"x": x})
    assert found.shape == (2500, 2) and np.all(np.isnan(found[2000]))
    x[2000] = 0.0
    assert np.allclose(CIRCLE.solve("y", {"x": x}), -np.sqrt(25 - x**2), atol=1e-12)
    assert CIRCLE.solutions("y", {"x": []}).shape == (0, 1)
    assert CIRCLE.solve("y", {"x": []}).shape == (0,)


def test_a_function_is_narrowed_to_a_little_more_than_its_solutions() -> None:
    for boxes in ({}, {"x": (3.0, 9.0)}, {"x": (-4.5, 2.0), "y": (0.0, 4.0)}):
        exact = CIRCLE.narrowed(boxes)
        guess = RING.narrowed(boxes)
        for name in "xy":
            low, high = exact[name]
            assert low - 1.5 <= guess[name][0] <= low + 1e-3
            assert high - 1e-3 <= guess[name][1] <= high + 1.5
    with pytest.raises(InvalidParameter, match="hold a solution of 'ring"):
        RING.narrowed({"x": (6.0, 9.0)})


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 9])
def test_a_fit_finds_the_polynomial_that_made_the_records(degree: int) -> None:
    rng = np.random.default_rng(1)
    height = rng.uniform(150.0, 190.0, 300)
    truth = np.polynomial.Polynomial(rng.normal(size=degree + 1))
    weight = 70 + truth((height - 170) / 20)
    fitted = FullCoupling.fit({"w": weight, "h": height}, "w", ["h"], degree=degree)
    assert fitted.attributes == ("w", "h")
    assert np.allclose(fitted.solve("w", {"h": height}), weight, atol=1e-9)
    assert 0 <= fitted.residual < 1e-9
    assert fitted.domains["h"] == (height.min(), height.max())
    read_again = FullCoupling.equation(fitted.text, fitted.domains)
    assert np.array_equal(
        read_again.residuals({"w": weight, "h": height}),
        fitted.residuals({"w": weight, "h": height}),
    )


def test_a_fit_tells_what_it_leaves(rng: np.random.Generator) -> None:
    first, second = rng.normal(1e6, 3.0, 4000), rng.normal(-5.0, 1e-3, 4000)
    target = 2 * (first - 1e6) + 1e3 * second * (first - 1e6) + rng.normal(0, 7.0, 4000)
    records = {"body mass": target, "one": first, "zwei": second}
    domains = {"body mass": (-1e5, 1e5), "one": (9e5, 2e6), "zwei": (-6.0, -4.0)}
    fitted = FullCoupling.fit(records, "body mass", ["one", "zwei"], domains=domains)
    assert fitted.text.startswith("`body mass` = ")
    assert fitted.residual == pytest.approx(7.0, rel=0.1)
    assert np.std(fitted.residuals(records)) == pytest.approx(fitted.residual, rel=0.01)
    assert dict(fitted.domains) == domains


def numbers(count: int) -> Floats:
    return np.linspace(SECRET, SECRET + 1, count)


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ({"w": numbers(3), "h": numbers(3)}, {}, "more rows than the polynomial has terms, 3"),
        ({"w": numbers(9), "h": np.full(9, SECRET)}, {}, r"records\['h'\] must hold at least two"),
        ({"w": np.full(9, SECRET), "h": numbers(9)}, {}, r"records\['w'\] must hold at least two"),
        ({"w": numbers(9), "h": numbers(9)}, {"degree": 0}, "degree must be a whole number"),
        ({"w": numbers(9), "h": numbers(9)}, {"degree": 10}, "degree must be at most 9"),
        ({"w": numbers(9), "h": [str(SECRET), "x"] * 4 + ["y"]}, {}, "be finite numbers"),
        ({"w": numbers(9), "h": [math.nan] * 9}, {}, "be finite numbers"),
        ({"w": numbers(9), "h": numbers(8)}, {}, "records must be columns of the same length"),
        ({"w": numbers(9)}, {}, r"records must hold 'h'; got \['w'\]"),
        ({"w": numbers(9), "h": [SECRET, SECRET + 1, SECRET] * 3}, {}, "different enough"),
        ({"w": numbers(9), "h": numbers(9)}, {"features": []}, "features must be at least one"),
        ({"w": numbers(9), "h": numbers(9)}, {"features": ["w"]}, "not the target"),
        ({"w": numbers(9), "h": numbers(9)}, {"features": ["h", "h"]}, "each named once"),
        ({"w": numbers(9), "h": numbers(9)}, {"domains": {"w": (0, 1)}}, "an interval for 'h'"),
    ],
)
def test_records_that_cannot_be_fitted_are_refused_and_not_quoted(
    records: dict[str, Floats], options: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {"features": ["h"], **options}
    with pytest.raises(InvalidParameter, match=message) as caught:
        FullCoupling.fit(records, "w", **arguments)  # type: ignore[arg-type]
    assert str(SECRET) not in str(caught.value)


def test_too_many_terms_are_refused() -> None:
    rng = np.random.default_rng(1)
    records = {name: rng.normal(size=900) for name in ("w", *"abcd", "n" * 99, "m" * 99)}
    with pytest.raises(InvalidParameter, match="715 terms are more than 200"):
        FullCoupling.fit(records, "w", list("abcd"), degree=9)
    with pytest.raises(InvalidParameter, match="more than 4000 characters"):
        FullCoupling.fit(records, "w", ["n" * 99, "m" * 99], degree=9)


@pytest.mark.parametrize(
    "domain", [(1, 1), (2, 1), (0, math.inf), (math.nan, 1), (-1.7e308, 1.7e308), (1,), "ab", None]
)
def test_a_domain_is_finite_and_not_empty(domain: object) -> None:
    with pytest.raises(InvalidParameter, match="the domain of 'y' must be an interval"):
        FullCoupling.equation("x = y", {"x": (0, 1), "y": domain})  # type: ignore[dict-item]


def test_every_attribute_has_a_domain_and_others_are_left_out() -> None:
    with pytest.raises(InvalidParameter, match="domains must give an interval for 'y'"):
        FullCoupling.equation("x = y", {"x": (0, 1)})
    extra: dict[str, Interval] = {"x": (0, 1), "y": (0, 1), "z": (0, 1)}
    coupling = FullCoupling.equation("x = y", extra)
    assert dict(coupling.domains) == {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    with pytest.raises(TypeError):
        coupling.domains["x"] = (0, 2)  # type: ignore[index]


@pytest.mark.parametrize("text", ["1 = 1", "x = 3", "x**2 = x"])
def test_an_equation_ties_at_least_two_attributes(text: str) -> None:
    with pytest.raises(InvalidParameter, match="coupling must tie at least two"):
        FullCoupling.equation(text, {"x": (0, 1)})


def test_a_row_without_solution_is_counted_and_not_quoted() -> None:
    with pytest.raises(InvalidParameter, match="1 of 2 rows have no solution") as caught:
        CIRCLE.solve("y", {"x": [SECRET, 1.0]})
    assert "solvable for 'y' within its domain -9 to 9" in str(caught.value)
    assert str(SECRET) not in str(caught.value)


def test_missing_columns_and_unknown_attributes_are_named() -> None:
    with pytest.raises(InvalidParameter, match=r"others must hold 'b'; got \['a'\]"):
        TOTAL.solve("c", {"a": 1.0})
    with pytest.raises(InvalidParameter, match=r"records must hold 'c'; got \['a', 'b'\]"):
        TOTAL.residuals({"a": 1.0, "b": 2.0})
    for call in (TOTAL.check_solvable, lambda name: TOTAL.solutions(name, {})):
        with pytest.raises(InvalidParameter, match="attribute must be one of 'a', 'b', 'c'"):
            call("d")
    with pytest.raises(InvalidParameter, match="attribute must be one of"):
        TOTAL.slopes("a", "d", {"a": 1, "b": 1, "c": 2})
    with pytest.raises(InvalidParameter, match="near must be one, or one per row"):
        TOTAL.solve("c", {"a": [1.0, 2.0], "b": 3.0}, near=[1.0, 2.0, 3.0])


def test_an_equation_out_of_reach_is_not_solvable() -> None:
    far = FullCoupling.equation("x**2 + y**2 = 25", {"x": (6, 9), "y": (-9, 9)})
    void = FullCoupling.equation("y - y + x = 3", {"x": (0, 1), "y": (0, 1)})
    touching = FullCoupling.equation("a + b = c", {"a": (0, 1), "b": (0, 1), "c": (1.9, 9)})
    for coupling in (far, void):
        with pytest.raises(InvalidParameter, match="have a solution for 'y' in the domains"):
            coupling.check_solvable("y")
    touching.check_solvable("c")
    RING.check_solvable("x")


def test_intervals_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="interval of 'x' must be low <= high"):
        CIRCLE.narrowed({"x": (2.0, 1.0)})
    with pytest.raises(InvalidParameter, match="hold a solution"):
        CIRCLE.narrowed({"x": (10.0, 11.0)})  # outside the domain
    assert CIRCLE.narrowed({"x": (3.0, 3.0), "y": (0.0, math.inf)})["y"] == pytest.approx((4, 4))


def test_a_function_gives_one_number_per_row() -> None:
    domains = {"x": (0, 1), "y": (0, 1)}
    for relation in (lambda _: [1.0, 2.0], lambda _: "text"):
        coupling = FullCoupling.function(relation, "xy", domains)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="relation must give one number per row"):
            coupling.residuals({"x": [0.1, 0.2, 0.3], "y": 0.5})
    with pytest.raises(InvalidParameter, match="attributes must be at most 8"):
        FullCoupling.function(ring, "abcdefghi", {})
