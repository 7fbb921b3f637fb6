"""What a user would pick instead for a track."""
