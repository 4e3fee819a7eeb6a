"""Making a draft for a model that has no smaller sibling: from its own blocks and its own answers."""
