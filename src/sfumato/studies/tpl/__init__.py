"""Experiments of the paper on temporal leakage (TPL)."""
