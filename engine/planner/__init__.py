"""Deciding who holds and who computes what; pure functions over frozen values."""
