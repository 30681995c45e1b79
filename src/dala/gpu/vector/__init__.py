"""Vector drawing: paths with coverage by exact area, strokes, paints, layers."""
