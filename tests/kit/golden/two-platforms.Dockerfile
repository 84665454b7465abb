# registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# Set by the builder for each platform.
ARG TARGETARCH
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-${TARGETARCH}/ /
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-${TARGETARCH}/ /
