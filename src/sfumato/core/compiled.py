"""How loops are compiled: pure arrays in, arrays out.

They are compiled when first called and kept on disk; nothing is compiled at import time.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typing.typeof import typeof

from sfumato.core.loop_cache import LoopCache

Loop = TypeVar("Loop", bound=Callable[..., Any])

IN_PLACE: Any = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Options of a loop that makes no array. It need not count who holds those that it is given: each
count is an atomic operation, and threads that share a table would wait for each other with it."""


def plain(kind: Any) -> Any:
    """The type of an argument without what needs no loop of its own.

    A frozen array is read like any other (a loop never writes to what it was not made to fill),
    and a number that stands in the source is a number.
    """
    if isinstance(kind, types.Array):
        return kind if kind.mutable else kind.copy(readonly=False)
    if isinstance(kind, types.Tuple | types.UniTuple):
        return types.Tuple(tuple(map(plain, kind.types)))
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral) else kind


class CompiledLoop(CPUDispatcher):
    """A loop that is compiled once for arguments that differ in nothing it could notice.

    Numba would compile a loop, and all that it calls, anew for each mixture of frozen and writable
    arrays.
    """

    def __init__(self, loop: Any, *settings: Any) -> None:
        super().__init__(loop, *settings)
        self._cache = self.kept = LoopCache(loop)

    def compile(self, sig: Any) -> Any:
        """The compiled form for arguments of some types, from disk if it is there."""
        given, _ = normalize_signature(sig)
        kinds = tuple(map(plain, given))
        try:
            entry = super().compile(kinds)
        finally:
            self.kept.released()
        if kinds != tuple(given):
            known: Any = self  # its base is written in C
            known._insert([kind._code for kind in given], entry, False)
        return entry

    def at_hand(self, *args: Any) -> bool:
        """Whether a call with these arguments would compile nothing."""
        kinds = tuple(plain(typeof(each)) for each in args)
        return kinds in self.overloads or self.kept.has(kinds, self.targetctx)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """As numba's, for a call from another loop."""
        named = {name: plain(kind) for name, kind in kws.items()}
        return super().get_call_template(tuple(map(plain, args)), named)


def njit(*, cache: Literal[True], **options: Any) -> Callable[[Loop], Loop]:
    """Compile a loop when it is first called, as numba does, and keep it; typed for its callers."""

    def compiled(loop: Loop) -> Loop:
        # Nobody calls a loop from C: the code for that is not made.
        always = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True}
        made: Any = CompiledLoop(loop, {}, {**options, **always})
        return made  # type: ignore[no-any-return]

    return compiled
