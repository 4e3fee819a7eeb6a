"""Using the swarm: routes, sessions, the token loop."""
