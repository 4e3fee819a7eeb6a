"""The commands: `shoal` and, for services, `shoal-engine`. Start reading at `program`.

Nothing heavy is imported before a command needs it: `shoal status` answers at once.
"""
