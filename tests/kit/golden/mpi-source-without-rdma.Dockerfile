# registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# Open MPI and UCX are compiled where the C library is old, so that they run on every later one.
FROM debian:11-slim AS mpi
# The compiler, from the builder image's own package sources.
COPY build/ /build/
RUN ["/build/install-packages.sh", "bzip2", "g++", "make", "patchelf", "perl", "xz-utils"]
# The archives were checked against their digests before they came here.
COPY archives/openmpi.tar archives/ucx.tar /build/archives/
# At the final prefix, found by $ORIGIN, stripped.
RUN ["/build/compile-mpi.sh", "/build/archives", "/opt/azcp/openmpi"]

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-amd64/ /
COPY --from=mpi /opt/azcp/openmpi/ /opt/azcp/openmpi/
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-amd64/ /
