"""Scenes in the studio: the file as a document, edits of it, and the scene that it makes."""
