"""The sound of scenes: nodes on one clock, ducking, levels, and playing it."""
