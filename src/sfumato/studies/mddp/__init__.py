"""Experiments of the paper on tied columns (MDDP)."""
