"""The online loop: `(event, new_state) = step(state, value, randomness)`."""
