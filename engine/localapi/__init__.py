"""The contract between the engine's local API and everyone who calls it."""
