"""Arithmetic in named attributes, from text that nobody needs to trust.

The text is cut into tokens, and only numbers, names and signs of arithmetic pass. The grammar is
that of Python, read by `ast` with a placeholder for every token, and a white list turns the tree
into steps for a stack of numbers or of intervals. Nothing is ever run as code.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.intervals import ON_INTERVALS, Pair, interval, point

Step = tuple[str, float | str]
Token = tuple[str, str, int]
"""Kind, text and end of a token."""

LONGEST = 4000
"""Characters that an expression may have."""
_DEEPEST = 50
_LARGEST_EXPONENT = 100.0
_FUNCTIONS = ("sqrt", "exp", "log", "abs")
_ALLOWED = (
    "be arithmetic: numbers, names (`in backquotes` if they are no plain words), "
    f"+ - * / **, parentheses and {', '.join(_FUNCTIONS)}"
)
_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[^\W\d]\w*)
    |`(?P<quoted>[^`\n]+)`
    |(?P<sign>\*\*|[-+*/()=])
    )""",
    re.VERBOSE,
)
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "**",
    ast.UAdd: "unary +",
    ast.USub: "unary -",
}
_BINARY = ("+", "-", "*", "/")


@dataclass(frozen=True, slots=True)
class Expression:
    """A formula of columns.

    Attributes:
        text: How it was written.
        names: The attributes in it, in order of appearance.

    Examples:
        >>> weight = Expression.parse("261.88 - 7.35*height + 0.083*height**2")
        >>> weight.names, weight({"height": [150, 190]})
        (('height',), array([1026.88, 1861.68]))
        >>> Expression.parse("2 * `body mass`").names
        ('body mass',)
        >>> Expression.parse("__import__('os')")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: coupling must be arithmetic: numbers, names ...
    """

    text: str
    names: tuple[str, ...]
    _steps: tuple[Step, ...] = field(repr=False, compare=False)

    @classmethod
    def sides(cls, text: str) -> tuple[Self, Self]:
        """The two sides of an equation.

        Examples:
            >>> left, right = Expression.sides("`body mass` = 2*height")
            >>> left.names, right.text
            (('body mass',), '2*height')
        """
        ends = [end for kind, token, end in _tokens(text) if (kind, token) == ("sign", "=")]
        if len(ends) != 1:
            raise InvalidParameter("coupling", text, "be an equation with exactly one '='")
        return cls.parse(text[: ends[0] - 1]), cls.parse(text[ends[0] :])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an expression, or say what may stand in one."""
        tokens = _tokens(text)
        if any(kind == "sign" and token == "=" for kind, token, _ in tokens):
            raise _refused(text, "'=' belongs between two expressions")
        steps = _steps(text, _tree(text, tokens), tokens)
        names = dict.fromkeys(str(what) for kind, what in steps if kind == "name")
        return cls(text.strip(), tuple(names), steps)

    def __call__(self, values: Mapping[str, ArrayLike]) -> Floats:
        """Values of the expression; columns are broadcast, and nan or inf say: undefined here.

        Examples:
            >>> Expression.parse("log(x) / y")({"x": [1.0, -1.0], "y": 2.0})
            array([ 0., nan])
        """
        columns = {name: _floats(name, _entry(values, name)) for name in self.names}
        with np.errstate(all="ignore"):
            value = _run(self._steps, columns, np.float64, _ON_NUMBERS)
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        return np.array(np.broadcast_to(value, shape))

    @property
    def alone(self) -> bool:
        """Whether it is one name and nothing else."""
        return [kind for kind, _ in self._steps] == ["name"]

    def appearances(self, name: str) -> int:
        """How often a name stands in it: intervals are exact in those that stand there once."""
        return sum(kind == "name" and what == name for kind, what in self._steps)

    def enclosures(self, boxes: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Pair:
        """Lower and upper bounds of the values over many boxes at once, rounded outward.

        Args:
            boxes: The lower and the upper ends of each attribute, broadcast.

        Returns:
            Bounds for each box; nan where the expression is defined nowhere in it.

        Examples:
            >>> Expression.parse("sqrt(x)").enclosures({"x": ([-2.0, -1.0], [-1.0, 4.0])})
            (array([nan,  0.]), array([nan,  2.]))
        """
        pairs = {}
        for name in self.names:
            low, high = (_floats(name, end) for end in _entry(boxes, name))
            if not np.all(low <= high):
                raise InvalidParameter(f"the interval of {name!r}", "another", "be low <= high")
            pairs[name] = interval(low, high)
        with np.errstate(all="ignore"):
            low, high = _run(self._steps, pairs, point, ON_INTERVALS)
        return low, high


def quoted(name: str) -> str:
    """A name as an expression spells it.

    Examples:
        >>> quoted("height"), quoted("body mass")
        ('height', '`body mass`')
    """
    if name.isidentifier():
        return name
    if not name.strip() or "`" in name or "\n" in name:
        raise InvalidParameter("coupling", name, "name attributes without backquotes in them")
    return f"`{name}`"


def _refused(text: str, why: str) -> InvalidParameter:
    return InvalidParameter("coupling", text, f"{_ALLOWED}; {why}")


def _tokens(text: str) -> list[Token]:
    if not isinstance(text, str):
        raise InvalidParameter("coupling", type(text).__name__, "be text")
    if len(text) > LONGEST:
        raise InvalidParameter("coupling", text, f"have at most {LONGEST} characters")
    place, deep, tokens, length = 0, 0, [], len(text.rstrip())
    while place < length:
        match = _TOKENS.match(text, place)
        if match is None:
            raise _refused(text, f"{text[place:].lstrip()[:1]!r} is none of these")
        kind = str(match.lastgroup)
        token, place = match[kind], match.end()
        # A limit of our own: that of `ast` is the stack's, which depends on the machine.
        deep += {"(": 1, ")": -1}.get(token, 0) if kind == "sign" else 0
        if deep > _DEEPEST:
            raise _refused(text, f"at most {_DEEPEST} levels deep")
        if kind == "name" and not token.isidentifier():
            raise _refused(text, f"{token!r} is no plain word")
        if kind == "number" and not math.isfinite(float(token)):
            raise _refused(text, "a number is too large")
        tokens.append((kind, token, place))
    return tokens


def _tree(text: str, tokens: list[Token]) -> ast.expr:
    """The shape of the expression: its leaves are named after the places of their tokens."""
    words = [token if kind == "sign" else f"_{at}" for at, (kind, token, _) in enumerate(tokens)]
    try:
        return ast.parse(" ".join(words), mode="eval").body
    except (SyntaxError, ValueError):
        raise _refused(text, "something is missing or out of order") from None
    except (RecursionError, MemoryError):
        raise _refused(text, "this is too long or too deep") from None


def _steps(text: str, tree: ast.expr, tokens: list[Token]) -> tuple[Step, ...]:
    """Steps in the order of a stack; an exponent becomes part of its power."""
    steps: list[Step] = []
    begins: list[int] = []  # where the steps of each operand on the stack begin
    for kind, what in _ordered(text, tree, tokens):
        if kind in ("number", "name"):
            begins.append(len(steps))
        elif kind in _BINARY:
            begins.pop()
        elif kind == "**":
            begin = begins.pop()
            what = _exponent(text, steps[begin:])
            del steps[begin:]
        steps.append((kind, what))
    return tuple(steps)


def _exponent(text: str, steps: list[Step]) -> float:
    if all(kind != "name" for kind, _ in steps):
        with np.errstate(all="ignore"):
            value = float(_run(steps, {}, np.float64, _ON_NUMBERS))
        if abs(value) <= _LARGEST_EXPONENT:
            return value
    raise _refused(text, f"exponents are numbers up to {_LARGEST_EXPONENT:g}")


def _ordered(text: str, tree: ast.expr, tokens: list[Token]) -> list[Step]:
    """Operands before operations; without recursion, so that no depth is too deep."""
    waiting, backwards = [tree], list[Step]()
    while waiting:
        match waiting.pop():
            case ast.Name(id=place):
                kind, token, _ = tokens[int(place[1:])]
                number = kind == "number"
                backwards.append(("number", float(token)) if number else ("name", token))
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                backwards.append((_SIGNS[type(sign)], ""))
                waiting += [left, right]
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
                backwards.append((_SIGNS[type(sign)], ""))
                waiting.append(operand)
            case ast.Call(func=ast.Name(id=place), args=[argument], keywords=[]):
                kind, token, _ = tokens[int(place[1:])]
                if kind != "name" or token not in _FUNCTIONS:
                    raise _refused(text, f"{token!r} is no function of these")
                backwards.append((token, ""))
                waiting.append(argument)
            case _:
                raise _refused(text, "something is missing or out of order")
    return backwards[::-1]


def _entry(values: Mapping[str, Any], name: str) -> Any:
    try:
        return values[name]
    except KeyError:
        given = sorted(str(key) for key in values)
        raise InvalidParameter("columns", given, f"hold {name!r}") from None


def _floats(name: str, value: ArrayLike) -> Floats:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"column {name!r}", "something else", "be numbers") from None


def _run(
    steps: Sequence[Step],
    columns: Mapping[str, Any],
    number: Callable[[Any], Any],
    operations: Mapping[str, Callable[..., Any]],
) -> Any:
    stack: list[Any] = []
    for kind, what in steps:
        match kind:
            case "number":
                stack.append(number(what))
            case "name":
                stack.append(columns[str(what)])
            case "**":
                stack.append(operations[kind](stack.pop(), what))
            case _ if kind in _BINARY:
                right = stack.pop()
                stack.append(operations[kind](stack.pop(), right))
            case _:
                stack.append(operations[kind](stack.pop()))
    (result,) = stack
    return result


def _power(base: Floats, exponent: float) -> Floats:
    undefined = np.isnan(base) | ((base < 0) & (not exponent.is_integer()))
    return np.where(undefined, np.nan, base**exponent)  # nan**0 would be 1


_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": _power,
    "unary +": np.positive,
    "unary -": np.negative,
    "sqrt": np.sqrt,
    "exp": portable.exp,
    "log": portable.log,
    "abs": np.abs,
}
