"""Finding, checking and loading models; their blocks and heads."""
