"""The windows: each draws a view from `app.presenters` and emits what the person wants."""
