"""How the nodes of a job are found from inside one of them, by what its scheduler has left there."""
