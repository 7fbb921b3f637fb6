"""Noise on a lattice, and the densities it stands for."""
