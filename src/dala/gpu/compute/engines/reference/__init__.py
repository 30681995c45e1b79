"""The reference engine: NumPy definitions that other engines are tested against."""
