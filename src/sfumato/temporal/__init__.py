"""Differential privacy when values are correlated over time (TPL)."""
