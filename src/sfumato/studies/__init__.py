"""The papers' experiments, one file each: numbers and figures out."""
