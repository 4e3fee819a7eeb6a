"""Frozen values and two protocols that every other package may use; standard library only."""
