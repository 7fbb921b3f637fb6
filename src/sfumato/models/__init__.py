"""What the adversary knows before anything is released."""
