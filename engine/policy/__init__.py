"""When to yield to the machine's own user: pure, over readings that `engine.probes` takes."""
