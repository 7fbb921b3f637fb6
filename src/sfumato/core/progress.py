"""How long work tells how far it is."""

from collections.abc import Callable

Progress = Callable[[int], None]
"""Told how many rows or steps are done so far."""
