"""What a user would pick instead for a track: location privacy's own mechanisms, measured."""
