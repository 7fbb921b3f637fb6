"""Numbers that more than one part of this room rests on, and why they are what they are."""

from __future__ import annotations

THREADS = 2
"""Compiled loops run without the lock: more than two gain nothing on the machines at hand."""
CONFIDENCE = 0.99
"""Of every interval and limit that comes from sampling; said in reports and certificates."""
FEWEST_RECORDS = 200
"""Who knows fewer is a weak attacker: what he finds says nothing of a stronger one."""
GAUSSIAN_TAIL, LAPLACE_TAIL = 5.0, 9.0
"""Deviations beyond which an attacker takes noise to be impossible: 6e-7 and 3e-6 of it."""
EDGE = 1e-12
"""Numbers that quantiles are taken of stay so far from 0 and 1."""
