"""The local API: OpenAI-compatible and Shoal's own routes over aiohttp."""
