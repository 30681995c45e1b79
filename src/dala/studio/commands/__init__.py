"""Commands of pages by name: one function each."""
