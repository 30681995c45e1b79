"""Nodes that follow persons and things that a model finds in a video of their scene."""
