"""The compositor of a scene: nodes become draws, changes become damage, damage is painted."""
