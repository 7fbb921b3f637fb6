import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.expressions import LONGEST, Expression, quoted

REGRESSION = "261.88 - 7.35*h + 0.083*h**2"
NAMES = ("x", "y", "z")


def combined(children: st.SearchStrategy[str], functions: bool) -> st.SearchStrategy[str]:
    """Deeper expressions, as text that Python reads in the same way."""
    pairs = st.tuples(children, st.sampled_from([" + ", "-", "*", " / "]), children)
    powers = st.tuples(children, st.sampled_from(["1", "2", "3", "4", "-1", "-2"]))
    kinds = [
        pairs.map("".join),
        pairs.map(lambda three: f"({''.join(three)})"),
        powers.map(lambda two: f"({two[0]})**{two[1]}"),
        children.map(lambda one: f"-{one}"),
    ]
    if functions:
        names = st.sampled_from(["sqrt", "exp", "log", "abs"])
        kinds.append(st.tuples(names, children).map(lambda two: f"{two[0]}({two[1]})"))
        kinds.append(children.map(lambda one: f"({one})**0.5"))
    return st.one_of(kinds)


LITERALS = ("2.0", "0.1", "7.35", "3e-3")
leaves = st.sampled_from([*NAMES, *LITERALS])
rational = st.recursive(leaves, lambda inner: combined(inner, False), max_leaves=8)
expressions = st.recursive(leaves, lambda inner: combined(inner, True), max_leaves=8)
ends = st.floats(-6, 6, allow_subnormal=False)
intervals = st.tuples(ends, ends).map(lambda two: (min(two), max(two)))
boxes = st.fixed_dictionaries({name: intervals for name in NAMES})


@st.composite
def places(draw: st.DrawFn) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """A box and a point in it, often at one of its corners."""
    box = draw(boxes)
    shares = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
    point = {}
    for name, (low, high) in box.items():
        share = draw(shares)
        point[name] = high if share == 1.0 else min(high, low + share * (high - low))
    return box, point


def wrapped(text: str) -> str:
    """The same, with every number given to a type N of numbers."""
    for literal in LITERALS:
        text = text.replace(literal, f"N({literal})")
    return text


def by_python(text: str, point: dict[str, float]) -> float:
    """Python's own answer, in numpy's numbers."""
    tools: dict[str, object] = {"sqrt": np.sqrt, "exp": np.exp, "log": np.log, "abs": np.abs}
    values = {name: np.float64(value) for name, value in point.items()}
    with np.errstate(all="ignore"):
        tools = {"__builtins__": {}, "N": np.float64, **tools}
        return float(eval(wrapped(text), {**tools, **values}))


def enclosed(
    expression: Expression, box: dict[str, tuple[float, float]], pieces: int = 1
) -> tuple[float, float]:
    """Hull of the enclosures of a box, with names that stand there twice cut into pieces."""
    repeated = [name for name in expression.names if expression.appearances(name) > 1]
    boxes: dict[str, tuple[ArrayLike, ArrayLike]] = {name: box[name] for name in expression.names}
    for name in repeated if pieces > 1 else ():
        low, high = box[name]
        if math.isfinite(high - low):
            shape = [-1 if other == name else 1 for other in repeated]
            edges = np.linspace(low, high, pieces + 1)
            boxes[name] = edges[:-1].reshape(shape), edges[1:].reshape(shape)
    bottom, top = expression.enclosures(boxes)
    if np.all(np.isnan(bottom)):
        return math.nan, math.nan
    return float(np.nanmin(bottom)), float(np.nanmax(top))


@given(expressions, st.fixed_dictionaries({name: ends for name in NAMES}))
def test_text_means_what_it_means_in_python(text: str, point: dict[str, float]) -> None:
    expression = Expression.parse(text)
    assert set(expression.names) == {name for name in NAMES if name in text.replace("exp", "")}
    expected = by_python(text, point)
    value = float(expression(point))
    low, high = expression.enclosures({name: (at, at) for name, at in point.items()})
    assume(math.isfinite(expected))
    if math.isnan(value):  # Python goes on with the infinity of something undefined
        assert not math.isfinite(high - low) or "0.5" in text
        return
    assert low <= value <= high
    assert low <= expected <= high


@settings(max_examples=120)
@given(expressions, places())
@example("x**2", ({"x": (-2.0, 3.0)}, {"x": 0.0}))
@example("(x - y)/(x - y)", ({"x": (1.0, 2.0), "y": (1.0, 2.0)}, {"x": 2.0, "y": 1.0}))
@example("exp(log(x))", ({"x": (0.0, 1.0)}, {"x": 0.0}))
def test_an_enclosure_contains_every_value(
    text: str, place: tuple[dict[str, tuple[float, float]], dict[str, float]]
) -> None:
    box, point = place
    expression = Expression.parse(text)
    value = float(expression(point))
    assume(math.isfinite(value))
    for pieces in (1, 7):
        low, high = enclosed(expression, box, pieces)
        assert low <= value <= high


@settings(max_examples=120)
@given(rational, places())
def test_an_enclosure_contains_the_exact_value(
    text: str, place: tuple[dict[str, tuple[float, float]], dict[str, float]]
) -> None:
    box, point = place
    numbers = {name: Fraction(at) for name, at in point.items()}
    try:
        exact = eval(wrapped(text), {"__builtins__": {}, "N": Fraction, **numbers})
    except ZeroDivisionError:
        return
    expression = Expression.parse(text)
    low, high = enclosed(expression, box, 3)
    assert low == -math.inf or Fraction(low) <= exact
    assert high == math.inf or exact <= Fraction(high)


@given(expressions, boxes)
def test_more_pieces_never_enclose_less_tightly(
    text: str, box: dict[str, tuple[float, float]]
) -> None:
    expression = Expression.parse(text)
    coarse, fine = enclosed(expression, box), enclosed(expression, box, 8)
    assume(not math.isnan(fine[0]))  # smaller pieces may show that it is defined nowhere
    room = [1e-12 * (1 + abs(end)) if math.isfinite(end) else 0.0 for end in coarse]
    assert coarse[0] - room[0] <= fine[0] <= fine[1] <= coarse[1] + room[1]


@pytest.mark.parametrize(
    ("text", "box", "expected"),
    [
        ("x**2", (-2, 3), (0, 9)),
        ("x**2", (-3, -2), (4, 9)),
        ("x**3", (-2, 3), (-8, 27)),
        ("x**-1", (2, 4), (0.25, 0.5)),
        ("x**-2", (-4, -2), (1 / 16, 0.25)),
        ("x**0", (-4, 2), (1, 1)),
        ("x**0.5", (-4, 9), (0, 3)),
        ("x**(1/2 + 1)", (0, 4), (0, 8)),
        ("abs(x)", (-4, 2), (0, 4)),
        ("abs(x)", (-4, -2), (2, 4)),
        ("sqrt(x)", (-1, 9), (0, 3)),
        ("log(x)", (-1, 1), (-math.inf, 0)),
        ("exp(x)", (-math.inf, 0), (0, 1)),
        ("1/x", (-1, 2), (-math.inf, math.inf)),
        ("1/x", (0, 2), (-math.inf, math.inf)),
        ("1/x", (2, math.inf), (0, 0.5)),
        ("-x", (-1, 2), (-2, 1)),
        ("2 - 3*x", (-1, 2), (-4, 5)),
        ("x*0", (-math.inf, math.inf), (0, 0)),
        ("3", (0, 1), (3, 3)),
    ],
)
def test_ranges_of_single_names_are_tight(
    text: str, box: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert enclosed(Expression.parse(text), {"x": box}) == pytest.approx(
        expected, rel=1e-14, abs=1e-14
    )


def test_the_papers_regression_is_enclosed_within_a_percent() -> None:
    low, high = enclosed(Expression.parse(REGRESSION), {"h": (150, 190)}, pieces=64)
    assert 0.99 * 1026.88 < low <= 1026.88
    assert 1861.68 <= high < 1.01 * 1861.68


@pytest.mark.parametrize("text", ["sqrt(-1 - x**2)", "log(-exp(x))", "(0 - 1 - abs(x))**0.5"])
def test_what_is_nowhere_defined_has_no_range(text: str) -> None:
    assert np.all(np.isnan(Expression.parse(text).enclosures({"x": (-1, 1)})))


def test_columns_are_broadcast_and_undefined_values_are_not_finite() -> None:
    expression = Expression.parse("sqrt(x) + 1/y")
    values = expression({"x": [[4.0], [-1.0]], "y": [1.0, 0.0, 2.0]})
    assert values.shape == (2, 3)
    assert np.array_equal(values[0], [3.0, np.inf, 2.5])
    assert np.all(np.isnan(values[1]))
    assert np.isnan(Expression.parse("log(x)**0")({"x": -1.0}))
    assert Expression.parse("2*3")({}).shape == ()


def test_names_stand_in_order_and_may_be_quoted() -> None:
    expression = Expression.parse("`body mass` / größe - log + class*`a=b(2)` + größe")
    assert expression.names == ("body mass", "größe", "log", "class", "a=b(2)")
    left, right = Expression.sides("`a = b` = `c`*2")
    assert (left.names, right.names, right.text) == (("a = b",), ("c",), "`c`*2")
    assert Expression.parse(quoted("x y")).names == ("x y",)
    assert Expression.parse("ﬁ").names == ("ﬁ",)  # Python itself would read "fi"
    with pytest.raises(InvalidParameter, match="backquotes"):
        quoted("a`b")


HOSTILE = [
    "9**9**9",
    "9**99999",
    "x**y",
    "x**(1/0)",
    "x**(9**99**9)",
    "(" * 10_000 + "x" + ")" * 10_000,
    "(" * 300 + "x" + ")" * 300,
    "sqrt(" * 200 + "x" + ")" * 200,
    "-" * (LONGEST - 1) + "x",
    "2" + "**2" * 1300,
    "9" * 400,
    "1e999",
    "x" * (LONGEST + 1),
    "__import__('os').system('true')",
    "().__class__.__bases__",
    "x.real",
    "x[0]",
    "f(x)",
    "`sqrt`(x)",
    "2(x)",
    "sqrt(x, y)",
    "sqrt()",
    "sqrt(*x)",
    "sqrt(**x)",
    "sqrt(x)(y)",
    "'text'",
    "x < 3",
    "x == y",
    "x = y",
    "lambda x: x",
    "(x := 3)",
    "x if y else z",
    "x and y",
    "not x",
    "x // 2",
    "x % 2",
    "x @ y",
    "~x",
    "x, y",
    "()",
    "[x for x in y]",
    "{x}",
    "f'{x}'",
    "0x10",
    "1_000",
    "1j",
    "x²",
    "x\x00",
    "x # y",
    "x; y",
    "*x",
    "x y",
    "(x",
    "x)",
    "`x",
    "``",
    "",
    "  ",
    "x\u2028y",
    "\ud800",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="coupling must ") as caught:
        Expression.parse(text)
    assert caught.value.name == "coupling"


def test_what_is_allowed_is_said() -> None:
    with pytest.raises(InvalidParameter, match=r"\+ - \* / \*\*.*sqrt, exp, log, abs; '<' is none"):
        Expression.parse("x < 3")
    with pytest.raises(InvalidParameter, match="be text"):
        Expression.parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1" + "+1" * 1999, "x" + "*x" * 1900, "-" * 800 + "x"])
def test_long_text_is_read_or_refused_but_never_breaks(text: str) -> None:
    try:
        expression = Expression.parse(text)
    except InvalidParameter:
        return
    expression({"x": 1.0})
    enclosed(expression, {"x": (0.0, 1.0)})


alphabet = st.sampled_from([*"xy019.e+-*/()=` \n_:[]'\"{}<>!,@%&|^~\\#é²ﬁ\x00", "sqrt", "**", "e9"])


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=40), st.lists(alphabet, max_size=25).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        expression = Expression.parse(text)
    except InvalidParameter as error:
        assert error.name == "coupling"
        return
    expression(dict.fromkeys(expression.names, 0.5))
    assert Expression.parse(expression.text) == expression


def test_nothing_is_ever_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("code was run")

    monkeypatch.setattr("builtins.eval", run)
    monkeypatch.setattr("builtins.exec", run)
    monkeypatch.setattr("builtins.__import__", run)
    for text in ("2*x", "__import__('os')", "eval(x)", "exec(`1`)", "open(x)", "exit()"):
        try:
            Expression.parse(text)
        except InvalidParameter:
            continue
        assert text == "2*x"


@pytest.mark.parametrize("text", ["x", "x == y", "x = y = z", "x <= y", "= = ", "x + `a=b`"])
def test_an_equation_has_exactly_one_equals_sign(text: str) -> None:
    with pytest.raises(InvalidParameter, match="coupling must"):
        Expression.sides(text)


@pytest.mark.parametrize("text", ["= x", "x =", "="])
def test_both_sides_are_there(text: str) -> None:
    with pytest.raises(InvalidParameter, match="missing"):
        Expression.sides(text)


def test_missing_and_strange_columns_are_named_but_not_quoted() -> None:
    with pytest.raises(InvalidParameter, match=r"columns must hold 'y'; got \['x'\]"):
        Expression.parse("x + y")({"x": 1.0})
    with pytest.raises(InvalidParameter, match="column 'x' must be numbers") as caught:
        Expression.parse("x")({"x": ["secret"]})
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="interval of 'x' must be low <= high"):
        enclosed(Expression.parse("x"), {"x": (2.0, 1.0)})
    with pytest.raises(InvalidParameter, match="low <= high"):
        enclosed(Expression.parse("x"), {"x": (math.nan, 1.0)})
