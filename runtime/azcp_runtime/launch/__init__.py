"""How a job starts: find the nodes, wait for them, distribute on all of them, then run the user's command."""
