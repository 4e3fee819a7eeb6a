"""Drafting for the swarm: token trees, drafts, rules of acceptance, training, and when it pays."""
