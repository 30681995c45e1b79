"""Animations of node properties: easing, keyframes, interpolation."""
