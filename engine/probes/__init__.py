"""What `engine.policy` wants to know of the machine, asked of its system. Every call blocks."""
