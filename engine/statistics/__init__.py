"""What this node has given, used and taken over the last hour, day and week, and in all."""
