"""Values that leave together, and the parts that their patterns fall into."""
