"""The agent: the one place that builds the concrete parts, joins them and owns their lifetime."""
