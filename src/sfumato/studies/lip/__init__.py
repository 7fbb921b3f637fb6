"""Experiments of the paper on local information privacy (LIP)."""
