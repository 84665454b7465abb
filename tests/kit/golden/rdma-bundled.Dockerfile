# registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# The verbs library with its providers, all of one release, compiled where the C library is old.
FROM debian:11-slim AS rdma
COPY build/ /build/
RUN ["/build/install-packages.sh", "cmake", "gcc", "libc6-dev", "libnl-3-dev", "libnl-route-3-dev", "make", "patchelf", "pkg-config", "python3"]
COPY archives/rdma-core.tar /build/archives/
RUN ["/build/compile-rdma.sh", "/build/archives/rdma-core.tar", "/opt/azcp/rdma"]

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-amd64/ /
COPY --from=rdma /opt/azcp/rdma/ /opt/azcp/rdma/
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-amd64/ /
