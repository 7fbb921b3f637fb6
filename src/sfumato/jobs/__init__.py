"""The main jobs on tables as Python calls: fit, plan, release, audit."""
