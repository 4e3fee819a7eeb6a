"""From logits to a token: parameters, counter-based noise, and the sampler of the last stage."""
