"""Input: events from windows, pages, notebooks and terminals, and the loop that draws frames."""
