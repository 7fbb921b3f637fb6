"""The best channel for a belief, a loss and a budget."""
