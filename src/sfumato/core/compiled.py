"""How loops are compiled: pure arrays in, arrays out.

They are compiled when first called and kept on disk; nothing is compiled at import time.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[Loop], Loop]:
    """Compile a loop when it is first called, as numba does; typed for those who call it."""
    compiled: Callable[[Loop], Loop] = numba.njit(**options)
    return compiled


def _probe() -> None:
    """A function of this folder, to ask whether its loops could be kept."""


def keep_somewhere() -> str | None:
    """Make sure that compiled loops can be kept, if only until this process ends.

    Numba keeps them beside the source, or in the cache of the user. In a read-only installation
    without a home it would refuse to define a single loop. A fixed folder that others may write
    to is no way out: compiled loops that somebody planted there would be run.

    Returns:
        The folder of this process alone; None if the loops are kept where Numba wants.
    """
    try:
        njit(cache=True)(_probe)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="sfumato-loops-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        settings: Any = numba.config
        settings.CACHE_DIR = folder
        return folder
    return None


keep_somewhere()
