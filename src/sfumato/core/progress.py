"""How long work tells how far it is."""

from collections.abc import Callable

# Told how many rows or steps are done so far.
Progress = Callable[[int], None]
