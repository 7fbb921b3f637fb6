"""Tables in and out: CSV, JSON lines, Parquet and Arrow, a chunk at a time."""
