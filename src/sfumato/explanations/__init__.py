"""Artefacts in plain words: what a model holds, and what a release promises, told to people."""
