"""What pages can ask for, by name: one function each."""
