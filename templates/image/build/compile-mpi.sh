#!/bin/sh
# Compile UCX and Open MPI from the archives in a folder, into one prefix; leave what runs, not what compiles.
set -eu

archives=$1
prefix=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# DT_RPATH, which the loader asks before LD_LIBRARY_PATH: the base may have another Open MPI or UCX there.
LDFLAGS="-Wl,--disable-new-dtags"
CFLAGS="-O2 -g0"
export LDFLAGS CFLAGS

unpack() {
    mkdir "$work/$1"
    tar -xf "$archives/$1.tar" -C "$work/$1" --strip-components=1
    if [ ! -x "$work/$1/configure" ]; then
        echo "the archive of $1 has no configure: take its publisher's release, not the archive of a tag" >&2
        exit 1
    fi
}

unpack ucx
cd "$work/ucx"
./contrib/configure-release --prefix="$prefix" --enable-mt --disable-static \
    --without-java --without-go --without-cuda --without-rocm --without-knem --without-xpmem
make -j "$(nproc)" install

unpack openmpi
cd "$work/openmpi"
./configure --prefix="$prefix" --with-ucx="$prefix" --without-verbs --without-slurm --disable-static \
    --disable-getpwuid --disable-mpi-fortran --disable-oshmem --disable-man-pages --enable-mpi1-compatibility=no \
    --with-libevent=internal --with-hwloc=internal --with-pmix=internal \
    --enable-mca-no-build=btl-uct,op-avx
make -j "$(nproc)" install

"$(dirname "$0")/relocate.sh" "$prefix"
