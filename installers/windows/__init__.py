"""What Shoal's setup for Windows does once it has a Python, one job a module.

Standard library and `app.wsl` only: it runs before anything is installed.
"""
