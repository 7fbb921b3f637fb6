"""One column of a table, released once (LIP)."""
