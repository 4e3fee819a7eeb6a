"""What `installers/build.py` does: one module for each target, and one for each part they share."""
