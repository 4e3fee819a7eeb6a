"""Being part of a swarm: the peer, its links, its announcements, what it sees of others."""
