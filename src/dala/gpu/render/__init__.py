"""The render thread of a surface: its command queue, its worker, its life cycle."""
