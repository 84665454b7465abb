# registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef with the distributor under /opt/azcp.
# For the classic builder and BuildKit alike: no RUN --mount, no heredoc.

# The base, untouched: its ENV, USER, ENTRYPOINT, CMD and WORKDIR stay as they are.
FROM registry.example/team/base@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# Packages need root; the base's own user comes back below.
USER 0
# What the next step runs, and removes.
COPY build/install-packages.sh /tmp/azcp-build/
# Only what is missing, from the distribution's own sources; lists and archives are not kept.
RUN ["/tmp/azcp-build/install-packages.sh", "--own-sources", "/etc/apt/sources.list.d/debian.sources", "openssh-server", "libibverbs1", "ibverbs-providers", "librdmacm1"]
# As the base has it.
USER 1000:100
# The private Python, MPI and packages: no package manager, shell, network or root of the base is needed.
COPY vendor-amd64/ /
# The runtime itself, a layer of its own: it changes more often than what it stands on.
COPY own-amd64/ /
