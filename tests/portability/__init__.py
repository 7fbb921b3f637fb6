"""The same bits on every machine: jobs on pretended processors, and a rule for the source."""
