"""Back ends, by name."""

backends = {}
