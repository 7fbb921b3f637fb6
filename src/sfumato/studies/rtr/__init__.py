"""Experiments of the paper on series in real time (RTR)."""
