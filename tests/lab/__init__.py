"""The laboratory of the tests: data sets, an account that misbehaves on demand, and mpirun."""
