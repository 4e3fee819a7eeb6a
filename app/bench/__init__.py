"""How heavy the app is and how smoothly it runs: what `shoal bench desktop` starts.

`measuring` starts the app anew and watches it from outside; `driven` is that app, with a `person`
who uses its windows and `stalls` that watch its main thread; `report` holds the numbers beside
their targets.
"""
