# registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# Open MPI and UCX from an image that has them; here they only learn to find each other by $ORIGIN.
FROM debian:11-slim AS mpi
COPY build/ /build/
RUN ["/build/install-packages.sh", "binutils", "patchelf"]
COPY --from=team/mpi:4.1.6 /opt/openmpi/ /opt/azcp/openmpi/
COPY --from=team/mpi:4.1.6 /opt/ucx/ /opt/azcp/openmpi/
RUN ["/build/relocate.sh", "/opt/azcp/openmpi"]

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-amd64/ /
COPY --from=mpi /opt/azcp/openmpi/ /opt/azcp/openmpi/
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-amd64/ /
