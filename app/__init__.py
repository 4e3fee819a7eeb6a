"""The tray and the windows: a view on the engine, over its local API."""
