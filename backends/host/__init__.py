"""The engine that makes the machine fast on this host; it writes the same bytes as the codelets."""
