"""A series of numbers, released as it comes (RTR)."""
