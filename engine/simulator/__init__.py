"""Swarms in virtual time: the real planner among hundreds of nodes that come, go, fail and lie."""
