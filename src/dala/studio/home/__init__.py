"""Taking it home: code, command lines, presets, scenes, files and web pages."""
