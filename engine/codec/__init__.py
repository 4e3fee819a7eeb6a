"""Hidden states in fewer bytes, bit for bit; pure functions over buffers.

The codec knows nothing of frames, links or sessions: it gets packed rows `[N, D]` and gives bytes.
`engine.codec.payload` has the format; `reference` what both sides of a link agree on beforehand.
"""
