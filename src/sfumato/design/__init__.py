"""The best mechanism for a belief, a loss and a budget; and the rivals to compare it with."""
