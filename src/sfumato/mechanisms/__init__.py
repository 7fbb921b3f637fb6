"""Randomised maps from one true value to one released value: frozen, without coins or state."""
