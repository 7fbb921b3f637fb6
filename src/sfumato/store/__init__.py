"""Where states and ledgers live: one atomic commit per group of answers."""
