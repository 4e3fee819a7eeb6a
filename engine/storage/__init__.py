"""The agent's one SQLite file: opening, migrating, writing. Each feature brings its own tables."""
