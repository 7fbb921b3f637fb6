"""What is kept: bytes, files, the ledger of a release."""
