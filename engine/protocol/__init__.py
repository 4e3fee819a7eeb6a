"""What crosses the wire between nodes: frames, messages, records. Pure."""
