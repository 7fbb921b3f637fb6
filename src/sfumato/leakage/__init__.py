"""How much a mechanism tells, under each notion: plain functions, exact, rounded up."""
