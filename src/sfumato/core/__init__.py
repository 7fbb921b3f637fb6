"""The common ground: errors, checks, alphabets, channels, beliefs, guarantees, coins, ledgers."""
