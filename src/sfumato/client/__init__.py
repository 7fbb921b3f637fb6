"""The client of a service: events in, answers out, retries that are safe by construction."""
