"""Batches of requests: reading their rows, keeping them, and working through them to the end."""
