"""Numba loops: pure arrays in, arrays out.

They are compiled when first called and kept on disk; nothing is compiled at import time.
"""
