"""What an adversary makes of released columns."""
