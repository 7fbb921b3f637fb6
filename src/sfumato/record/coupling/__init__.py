"""How the columns of a person hang together."""
