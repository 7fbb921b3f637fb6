"""Experiments of our own: what a stream of real sequences loses."""
