"""Parts of the commands that render scenes: the scene of the demo, and watching a scene file."""
