"""Cutting and joining videos: packets are copied where that gives the wanted frames."""
