"""Sample data for first steps: small made-up tables, and the commands that suit them."""
