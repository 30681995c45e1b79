"""Recipes of filters that read neighboring pixels."""
