"""Experiments of the paper on sequences (SIP)."""
