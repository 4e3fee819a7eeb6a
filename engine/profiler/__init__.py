"""What this machine can do: measured, never assumed."""
