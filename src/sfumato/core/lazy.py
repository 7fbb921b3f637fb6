"""Public names of a package that are loaded when they are first used.

A package lists its names once, as imports for type checkers (`from home import Name as Name` under
`if TYPE_CHECKING:`). The same list, read from the source, tells the loader where each name lives,
so that `import sfumato` costs nothing and the two can never differ.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType


@cache
def listed_names(package: str) -> dict[str, str]:
    """Each public name of a package and the module it lives in.

    Examples:
        >>> listed_names("sfumato")["MarkovChain"]
        'sfumato.models.markov'
    """
    import ast
    from importlib.util import find_spec

    spec = find_spec(package) if package in sys.modules else None
    source = getattr(getattr(spec, "loader", None), "get_source", lambda name: None)(package)
    if source is None:
        raise ImportError(f"the source of {package} must be there: its list of names is read")
    homes = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module is not None:
                    homes.update({alias.name: line.module for alias in line.names})
    return homes


class _Package(ModuleType):
    """A package in which a public name stays what it is when the module of that name is loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        own = f"{self.__name__}.{name}"
        if isinstance(value, ModuleType) and value.__name__ == own and hasattr(value, name):
            value = getattr(value, name) if listed_names(self.__name__).get(name) == own else value
        super().__setattr__(name, value)


def lazily(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that lists its names; `__all__` is one of them.

    The list is read when a name is first asked for: a command that needs none does not wait for it.
    """

    def load(name: str) -> object:
        homes = listed_names(package)
        if name == "__all__":
            return sorted(homes)
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(home)
        if home == package or not hasattr(module, name):
            return import_module(f"{home}.{name}")  # a module that is a public name
        return getattr(module, name)

    sys.modules[package].__class__ = _Package
    return load, lambda: sorted(listed_names(package))
