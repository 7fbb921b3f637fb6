"""The `sfumato` command."""
