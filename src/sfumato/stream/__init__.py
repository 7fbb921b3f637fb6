"""Streams of values: release, forecast, audit (SIP)."""
