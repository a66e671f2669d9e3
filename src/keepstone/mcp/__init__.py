"""The Model Context Protocol: an agent's memory for MCP clients, over stdio and HTTP.

Needs the extra ``mcp``. Nothing here is imported by ``import keepstone``.
"""
