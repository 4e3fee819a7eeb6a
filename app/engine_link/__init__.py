"""The engine's local API as messages and orders; the only package that knows HTTP.

Nothing here blocks: Qt's network access works on the event loop, and every answer arrives as a
message for the store. One module for each resource of the API.
"""
