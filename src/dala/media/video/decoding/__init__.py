"""Decoding: an open video, and the thread that decodes it ahead."""
