"""Shoal's engine: an agent that belongs to a swarm, and workers that compute.

Importing this package or `engine.core`, `engine.planner`, `engine.protocol`, `engine.localapi`
never loads torch, hivemind or Qt. Start reading at `engine/README.md`.
"""

__version__ = "0.1.0"
