# team/base:1 with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# What every distribution has beside the C library, and this base lacks.
FROM debian:11-slim AS platform
COPY build/ /build/
RUN ["/build/collect-libraries.sh", "/opt/azcp/platform", "libgcc_s.so.1", "libz.so.1"]

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM team/base:1
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-amd64/ /
COPY --from=platform /opt/azcp/platform/ /opt/azcp/platform/
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-amd64/ /
