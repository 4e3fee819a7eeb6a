"""Joins each window to the store and to the engine: one module for each window."""
