"""Other methods for series, at their best."""
