"""The remote shell between the nodes of a job: a server in each of them, and the client that mpirun calls."""
