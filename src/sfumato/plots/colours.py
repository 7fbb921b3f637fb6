"""Colours that all pictures share."""

BLUE, ORANGE, GREEN = "#1b6ca8", "#e07b39", "#4c9a5b"
GREY, RED, DARK = "#9a9a9a", "#b3261e", "#2b2b2b"
COLOURS = (BLUE, ORANGE, GREEN)
"""For curves of equal rank, one after another."""
