"""Execution of filters: plans, recipes, and the executor of filter lists."""
