"""The main jobs on tables as Python calls: fit, plan, release, audit."""

from collections.abc import Callable

Progress = Callable[[int], None]
"""Told how many rows or steps are done so far."""
