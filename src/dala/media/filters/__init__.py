"""How filters run: plans, recipes, and the executor of filter lists."""
