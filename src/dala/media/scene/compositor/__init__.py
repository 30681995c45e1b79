"""The compositor of a scene: from nodes to draws, damage to frames."""
