"""Several columns of the same people, released together (MDDP)."""
