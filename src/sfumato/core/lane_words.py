"""Eight 32-bit words side by side inside compiled loops: one instruction does for all of them.

As `lane_vectors` has it for floats. An `Eight` is LLVM's own vector: as words, eight hashes go on
at once; as bits, 256 ciphers do.

    total = eight(words, 0) + turned(eight(words, 1), 7)
    put_eight(words, 1, total ^ in_all(5))
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.datamodel import models
from numba.extending import register_model

from sfumato.core.lane_vectors import address_of, instructions, operation

LANES = 8
_BITS = 32
_WORD = ir.IntType(_BITS)
_WORDS = ir.VectorType(_WORD, LANES)


class EightType(types.Type):
    """Numba's type of eight words."""

    def __init__(self) -> None:
        super().__init__(name="Eight")


EIGHT = EightType()


@register_model(EightType)
class _EightModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORDS)


for _symbol, _instruction in (("add", "add"), ("xor", "xor"), ("and_", "and_"), ("or_", "or_")):
    operation(getattr(operator, _symbol), EIGHT, _instruction)
for _symbol, _instruction in (("iadd", "add"), ("ixor", "xor")):
    operation(getattr(operator, _symbol), EIGHT, _instruction)


def _place(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """Where one of the vectors of a flat array begins."""
    begin = builder.mul(place, ir.IntType(64)(LANES))
    return address_of(context, builder, kind, array, begin, _WORDS)


def vector(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """The instruction that loads one of the vectors of an array."""
    return builder.load(_place(context, builder, kind, array, place), align=4)


def keep_vector(context: Any, builder: Any, kind: Any, array: Any, place: Any, value: Any) -> None:
    """The instruction that stores one of the vectors of an array."""
    builder.store(value, _place(context, builder, kind, array, place), align=4)


@instructions
def eight(_typing, array, place):
    """Words `8 * place` and on of an array without gaps; they must be there."""

    def load(context, builder, sig, args):
        return vector(context, builder, sig.args[0], *args)

    return EIGHT(array, types.int64), load


@instructions
def put_eight(_typing, array, place, value):
    """Put eight words into an array, likewise."""

    def store(context, builder, sig, args):
        keep_vector(context, builder, sig.args[0], *args)
        return context.get_dummy_value()

    return types.void(array, types.int64, EIGHT), store


def _spread(builder: Any, value: Any) -> Any:
    first = builder.insert_element(ir.Constant(_WORDS, ir.Undefined), value, _WORD(0))
    order = ir.Constant(ir.VectorType(_WORD, LANES), [0] * LANES)
    return builder.shuffle_vector(first, first, order)


def _spread_low(builder: Any, value: Any) -> Any:
    return _spread(builder, builder.trunc(value, _WORD))


@instructions
def in_all(_typing, value):
    """The lower half of an integer in all lanes."""
    return EIGHT(types.int64), lambda _c, builder, _s, args: _spread_low(builder, args[0])


@instructions
def down(_typing, value, places):
    """Bits moved towards the lowest, zeros behind them."""

    def shift(_context, builder, _sig, args):
        return builder.lshr(args[0], _spread_low(builder, args[1]))

    return EIGHT(EIGHT, types.int64), shift


@instructions
def up(_typing, value, places):
    """Bits moved towards the highest, zeros behind them."""

    def shift(_context, builder, _sig, args):
        return builder.shl(args[0], _spread_low(builder, args[1]))

    return EIGHT(EIGHT, types.int64), shift


@instructions
def turned(_typing, value, places):
    """Bits moved towards the lowest; those that fall out come back at the top (places: 1 to 31)."""

    def rotate(_context, builder, _sig, args):
        right = _spread_low(builder, args[1])
        left = builder.sub(ir.Constant(_WORDS, [_BITS] * LANES), right)
        return builder.or_(builder.lshr(args[0], right), builder.shl(args[0], left))

    return EIGHT(EIGHT, types.int64), rotate


@instructions
def below(_typing, place, ends, value, other):
    """A value in lanes whose end is above a place, another one elsewhere."""

    def choose(_context, builder, _sig, args):
        before = builder.icmp_unsigned("<", _spread_low(builder, args[0]), args[1])
        return builder.select(before, args[2], args[3])

    return EIGHT(types.int64, EIGHT, EIGHT, EIGHT), choose
