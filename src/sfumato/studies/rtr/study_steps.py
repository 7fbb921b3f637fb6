"""Steps of a progress bar, one after another."""

from __future__ import annotations

from collections.abc import Callable


class Steps:
    """Called after each step; says how many are done.

    Examples:
        >>> steps = Steps(print)
        >>> steps(), steps()
        1
        2
        (None, None)
    """

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show, self._done = show, 0

    def __call__(self) -> None:
        """One more is done."""
        self._done += 1
        self._show(self._done)
