"""What `installers/bootstrap.py` does, one job a module; standard library only."""
