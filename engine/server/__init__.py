"""The stage: the agent's side (handler, scheduler, sessions, supervisor) and the worker process."""
