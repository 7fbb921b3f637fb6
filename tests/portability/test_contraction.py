"""What would let a loop for one processor differ from a loop for another, and does not.

A processor with fused steps can compute a product and a sum with one rounding, and one with wide
vectors sums in several lanes. LLVM does neither unless a loop allows it (`fastmath`; the rule of
`source_rule` finds loops that do), whatever the processor it compiles for.
"""

from typing import Any

import numpy as np
from numba import njit

from sfumato.core.arrays import Floats


# Not kept on disk: what is compiled here is looked at.
@njit(error_model="numpy")
def _sum_of_products(one: Floats, other: Floats) -> float:
    total = 0.0
    for place in range(one.size):
        total += one[place] * other[place]
    return total


@njit(error_model="numpy", fastmath=True)
def _in_any_order(one: Floats, other: Floats) -> float:
    total = 0.0
    for place in range(one.size):
        total += one[place] * other[place]
    return total


def assembly(loop: Any) -> str:
    (text,) = loop.inspect_asm().values()
    return str(text)


def test_products_and_sums_are_rounded_one_after_the_other_in_the_order_of_the_source() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        one, other = rng.normal(size=(2, 257))
        expected = 0.0
        for left, right in zip(one.tolist(), other.tolist(), strict=True):
            expected += left * right
        assert _sum_of_products(one, other) == expected


def test_one_rounding_would_be_seen() -> None:
    near = np.array([-1.0, 1 + 2.0**-30])
    far = np.array([1 + 2.0**-29, 1 + 2.0**-30])
    # Exactly 2**-60; rounded after the product, nothing is left.
    assert _sum_of_products(near, far) == 0.0


def test_no_loop_holds_a_fused_step_unless_it_is_allowed_to() -> None:
    values = np.ones(9)
    assert _sum_of_products(values, values) == _in_any_order(values, values) == 9.0
    assert "fmadd" not in assembly(_sum_of_products)
    # Were the name wrong, the line above would say nothing.
    loop: Any = _in_any_order
    fused = "+fma" in str(loop.targetctx.codegen().magic_tuple())
    assert ("fmadd" in assembly(_in_any_order)) == fused
