"""Plans: what a job would do, how long it takes here, and how it would scale."""
