"""Four numbers side by side inside compiled loops: one instruction does for all of them.

Numba leaves it to LLVM to find such instructions, and LLVM does not find them in short loops over
the columns of a channel. A `Four` is LLVM's own vector of four floats: each lane is rounded as a
number alone would be, whatever the processor, so nothing changes but the time. `Wholes` are four
64-bit integers.

    total = same(0.0)
    for row in range(rows):
        total += same(mass[row]) * four(weights, 4 * row)
    put(out, 0, total)
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.datamodel import models
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, register_model

_COUNT = 4
_FLOATS = ir.VectorType(ir.DoubleType(), _COUNT)
_INTS = ir.VectorType(ir.IntType(64), _COUNT)
_WORD = ir.IntType(32)


class FourType(types.Type):
    """Numba's type of four floats."""

    def __init__(self) -> None:
        super().__init__(name="Four")


class WholesType(types.Type):
    """Numba's type of four integers."""

    def __init__(self) -> None:
        super().__init__(name="Wholes")


FOUR, WHOLES = FourType(), WholesType()


@register_model(FourType)
class _FourModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FLOATS)


@register_model(WholesType)
class _WholesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _INTS)


def instructions(made: Callable[..., Any]) -> Any:
    """A function that numba writes down as LLVM's instructions; callers are not typed for it."""
    return intrinsic(made)


def operation(symbol: Callable[..., Any], kind: Any, instruction: str) -> None:
    """Let an operator work lane by lane."""
    template: Any = type("Lanes", (ConcreteTemplate,), {"cases": [signature(kind, kind, kind)]})
    infer_global(symbol)(template)

    @lower_builtin(symbol, kind, kind)
    def lower(_context, builder, _sig, args):
        return getattr(builder, instruction)(*args)


for _symbol, _instruction in (("add", "fadd"), ("sub", "fsub"), ("mul", "fmul")):
    operation(getattr(operator, _symbol), FOUR, _instruction)
    operation(getattr(operator, f"i{_symbol}"), FOUR, _instruction)
    operation(getattr(operator, _symbol), WHOLES, _instruction[1:])
    operation(getattr(operator, f"i{_symbol}"), WHOLES, _instruction[1:])
operation(operator.truediv, FOUR, "fdiv")


def address_of(context: Any, builder: Any, kind: Any, array: Any, place: Any, lanes: Any) -> Any:
    """Where four entries of a flat array begin."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), lanes.as_pointer())


@instructions
def four(_typing, array, place):
    """Four entries of an array without gaps, counted as if it were flat; they must be there."""

    def load(context, builder, sig, args):
        at = address_of(context, builder, sig.args[0], args[0], args[1], _FLOATS)
        return builder.load(at, align=8)

    return FOUR(array, types.int64), load


@instructions
def wholes(_typing, array, place):
    """Four integers of an array, likewise."""

    def load(context, builder, sig, args):
        at = address_of(context, builder, sig.args[0], args[0], args[1], _INTS)
        return builder.load(at, align=8)

    return WHOLES(array, types.int64), load


@instructions
def item(_typing, array, place):
    """One entry of an array without gaps, counted as if it were flat; it must be there.

    A place in brackets may count from the end, which takes longer to find out than to read.
    """

    def load(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.int64), load


@instructions
def address(_typing, array, place):
    """Where an entry of an array without gaps stands: for `four_at`."""

    def find(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(builder.gep(data, [args[1]]), ir.IntType(64))

    return types.int64(array, types.int64), find


@instructions
def four_at(_typing, place):
    """Four floats that begin at an address: in one of two arrays, and nobody asks which."""

    def load(_context, builder, _sig, args):
        return builder.load(builder.inttoptr(args[0], _FLOATS.as_pointer()), align=8)

    return FOUR(types.int64), load


@instructions
def fetch(_typing, array, place):
    """Begin to bring an entry of an array near: it is needed soon."""

    def hint(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        at = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        kinds = [at.type, _WORD, _WORD, _WORD]
        known = ir.FunctionType(ir.VoidType(), kinds)
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [at.type], known)
        builder.call(prefetch, [at, _WORD(0), _WORD(3), _WORD(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), hint


@instructions
def pairs(_typing, array, place):
    """Four pairs that follow each other in an array: the first of each, and the second."""

    def load(context, builder, sig, args):
        at = address_of(context, builder, sig.args[0], args[0], args[1], _FLOATS)
        low = builder.load(at, align=8)
        high = builder.load(builder.gep(at, [_WORD(1)]), align=8)
        orders = ([0, 2, 4, 6], [1, 3, 5, 7])
        parts = [builder.shuffle_vector(low, high, _order(order)) for order in orders]
        return context.make_tuple(builder, sig.return_type, parts)

    return types.UniTuple(FOUR, 2)(array, types.int64), load


@instructions
def put(_typing, array, place, value):
    """Put four floats, or integers, into an array without gaps."""

    def store(context, builder, sig, args):
        lanes = _FLOATS if sig.args[2] == FOUR else _INTS
        at = address_of(context, builder, sig.args[0], args[0], args[1], lanes)
        builder.store(args[2], at, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), store


def _order(lanes: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_WORD, _COUNT), lanes)


def _spread(builder: Any, value: Any, lanes: Any) -> Any:
    first = builder.insert_element(ir.Constant(lanes, ir.Undefined), value, _WORD(0))
    return builder.shuffle_vector(first, first, _order([0] * _COUNT))


@instructions
def same(_typing, value):
    """One float in all lanes."""
    return FOUR(types.float64), lambda _c, builder, _s, args: _spread(builder, args[0], _FLOATS)


@instructions
def beside(_typing, one, two, three, last):
    """Four floats side by side."""

    def join(_context, builder, _sig, args):
        value = ir.Constant(_FLOATS, ir.Undefined)
        for place, each in enumerate(args):
            value = builder.insert_element(value, each, _WORD(place))
        return value

    return FOUR(*[types.float64] * _COUNT), join


@instructions
def crossed(_typing, one, two, three, last):
    """Four times four numbers, rows for columns: the first of each, the second of each, and on."""

    def turn(context, builder, sig, args):
        def mix(first, second, order):
            return builder.shuffle_vector(first, second, _order(order))

        even, odd, low, high = [0, 4, 2, 6], [1, 5, 3, 7], [0, 1, 4, 5], [2, 3, 6, 7]
        a, b, c, d = args
        evens, odds = (mix(a, b, even), mix(c, d, even)), (mix(a, b, odd), mix(c, d, odd))
        turned = [mix(*half, order) for order in (low, high) for half in (evens, odds)]
        return context.make_tuple(builder, sig.return_type, turned)

    return types.UniTuple(FOUR, _COUNT)(*[FOUR] * _COUNT), turn


@instructions
def same_whole(_typing, value):
    """One integer in all lanes."""
    return WHOLES(types.int64), lambda _c, builder, _s, args: _spread(builder, args[0], _INTS)


@instructions
def floats_of(_typing, value):
    """Integers as floats, rounded to the nearest."""
    return FOUR(WHOLES), lambda _c, builder, _s, args: builder.sitofp(args[0], _FLOATS)


@instructions
def wholes_of(_typing, value):
    """Floats as integers, what is behind the point cut off."""
    return WHOLES(FOUR), lambda _c, builder, _s, args: builder.fptosi(args[0], _INTS)


@instructions
def bits_of(_typing, value):
    """The bits of floats as integers."""
    return WHOLES(FOUR), lambda _c, builder, _s, args: builder.bitcast(args[0], _INTS)


@instructions
def from_bits(_typing, value):
    """Floats by their bits."""
    return FOUR(WHOLES), lambda _c, builder, _s, args: builder.bitcast(args[0], _FLOATS)


@instructions
def shifted_down(_typing, value, places):
    """Integers over a power of two, rounded down."""

    def shift(_context, builder, _sig, args):
        return builder.ashr(args[0], _spread(builder, args[1], _INTS))

    return WHOLES(WHOLES, types.int64), shift


@instructions
def larger(_typing, one, other):
    """The larger one in each lane."""

    def choose(_context, builder, _sig, args):
        return builder.select(builder.fcmp_ordered(">", args[1], args[0]), args[1], args[0])

    return FOUR(FOUR, FOUR), choose


@instructions
def smaller(_typing, one, other):
    """The smaller one in each lane."""

    def choose(_context, builder, _sig, args):
        return builder.select(builder.fcmp_ordered("<", args[1], args[0]), args[1], args[0])

    return FOUR(FOUR, FOUR), choose


@instructions
def above_zero(_typing, asked, value):
    """A value where another is above 0, and 0 elsewhere."""

    def choose(_context, builder, _sig, args):
        none = ir.Constant(_FLOATS, [0.0] * _COUNT)
        return builder.select(builder.fcmp_ordered(">", args[0], none), args[1], none)

    return FOUR(FOUR, FOUR), choose


@instructions
def up_to(_typing, count, value, other):
    """The first lanes of one, the rest of another."""

    def choose(_context, builder, _sig, args):
        lanes = ir.Constant(_INTS, list(range(_COUNT)))
        before = builder.icmp_signed("<", lanes, _spread(builder, args[0], _INTS))
        return builder.select(before, args[1], args[2])

    return FOUR(types.int64, FOUR, FOUR), choose


def _extreme(sign: str) -> Any:
    def reduce(_context, builder, _sig, args):
        value = args[0]
        for order in ([2, 3, 0, 1], [1, 0, 3, 2]):
            other = builder.shuffle_vector(value, value, _order(order))
            value = builder.select(builder.fcmp_ordered(sign, other, value), other, value)
        return builder.extract_element(value, _WORD(0))

    return reduce


@instructions
def largest(_typing, value):
    """The largest of the four."""
    return types.float64(FOUR), _extreme(">")


@instructions
def smallest(_typing, value):
    """The smallest of the four."""
    return types.float64(FOUR), _extreme("<")


@instructions
def lane(_typing, value, place):
    """One of the four."""

    def take(_context, builder, _sig, args):
        return builder.extract_element(args[0], builder.trunc(args[1], _WORD))

    return (types.float64 if value == FOUR else types.int64)(value, types.int64), take


@instructions
def sum_of(_typing, value):
    """The sum of the four, two and two of them first."""

    def add(_context, builder, _sig, args):
        other = builder.shuffle_vector(args[0], args[0], _order([2, 3, 0, 1]))
        halves = builder.fadd(args[0], other)
        one, two = (builder.extract_element(halves, _WORD(place)) for place in (0, 1))
        return builder.fadd(one, two)

    return types.float64(FOUR), add


@instructions
def first_lane(_typing, value, wanted):
    """The first lane with a number; 4 if none has it."""

    def find(_context, builder, _sig, args):
        found = builder.fcmp_ordered("==", args[0], _spread(builder, args[1], _FLOATS))
        whole = ir.IntType(64)
        lanes = builder.zext(builder.bitcast(found, ir.IntType(_COUNT)), whole)
        return builder.cttz(builder.or_(lanes, whole(1 << _COUNT)), ir.IntType(1)(1))

    return types.int64(FOUR, types.float64), find
