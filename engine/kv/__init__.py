"""The KV cache of a stage."""
