"""Conversations as the engine keeps them: trees of messages in SQLite, and what a model is shown."""
