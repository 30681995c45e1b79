"""The contract of bytes: programs that store bytes, rewritten in integers for all engines."""
