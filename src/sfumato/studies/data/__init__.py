"""Real data that studies read from a folder the user names, and what stands in for them."""
