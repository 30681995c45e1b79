"""Nodes that follow what a model finds in a video of their scene."""
