"""What in the source may give other bits on another machine: found by reading it."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"
OUTSIDE = ("studies", "plots", "cli", "attacks")
"""Rooms that draw, print and attack: nothing that leaves is decided there."""

FUNCTIONS = frozenset(
    [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "pow",
        "power",
        "float_power",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "atan2",
        "arcsin",
        "arccos",
        "arctan",
        "arctan2",
        "arcsinh",
        "arccosh",
        "arctanh",
        "erf",
        "erfc",
        "gamma",
        "lgamma",
        "cbrt",
        "logaddexp",
        "logaddexp2",
        "geomspace",
        "logspace",
    ]
)
"""Of `math` and `numpy`: libraries have code for one processor and another."""

PRODUCTS = frozenset(
    [
        "dot",
        "vdot",
        "inner",
        "matmul",
        "vecdot",
        "tensordot",
        "einsum",
        "convolve",
        "correlate",
        "cov",
        "corrcoef",
        "polyfit",
        "linalg",
        "fft",
    ]
)
"""Of `numpy`: BLAS, LAPACK, and sines of the system."""

LIBRARIES = frozenset({"special", "stats", "linalg", "optimize", "ndimage", "interpolate"})
"""Of `scipy`; functions of these may be called where their results decide nothing, or are exact."""

MODULES = (
    *("sklearn", "scipy.optimize", "scipy.interpolate", "scipy.ndimage", "scipy.sparse.linalg"),
)
"""Modules whose functions are imported by name."""

EXACT = frozenset({"stats.rankdata", "stats.qmc", "linalg.toeplitz"})
"""Sorting, counting and copying."""


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of everything that may differ."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _power(node):
            yield node.lineno, "**"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if owner in ("math", "np") and name in FUNCTIONS:
                yield node.lineno, f"{owner}.{name}"
            elif owner == "np" and name in PRODUCTS:
                yield node.lineno, f"np.{name}"
            elif owner in LIBRARIES and f"{owner}.{name}" not in EXACT:
                yield node.lineno, f"{owner}.{name}"
            elif name == "dot" and owner != "portable":
                yield node.lineno, ".dot"
        elif isinstance(node, ast.keyword) and node.arg == "fastmath":
            yield node.lineno, "fastmath"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(MODULES):
            yield node.lineno, str(node.module)


def _power(node: ast.BinOp) -> bool:
    """Whether a power may be one of floats: squares and roots are exact, powers of two as well."""
    if isinstance(node.left, ast.Constant) and node.left.value in (2, 2.0, 4, 4.0, 10):
        return False
    return isinstance(node.right, ast.Constant) and node.right.value not in (2, 0.5, 1)


def found(folder: Path = SOURCE) -> dict[str, set[str]]:
    """File -> names of what may differ in it."""
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.py"))}
    told = {
        name: {use for _, use in uses(ast.parse(path.read_text(encoding="utf-8")))}
        for name, path in files.items()
        if name.split("/")[0] not in OUTSIDE
    }
    return {name: kinds for name, kinds in told.items() if kinds}
