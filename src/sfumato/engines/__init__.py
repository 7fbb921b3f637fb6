"""Engines: the same releases inside somebody else's cluster, row for row and bit for bit."""
