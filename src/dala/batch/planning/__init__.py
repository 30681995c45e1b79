"""Plans: the work of a job, how long it takes here, and how it would scale."""
