"""The forms of a row function, one file each."""
