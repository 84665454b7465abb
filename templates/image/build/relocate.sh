#!/bin/sh
# Make the programs and libraries of a prefix find each other by $ORIGIN, drop what only compilers need, strip.
set -eu

prefix=$1
cd "$prefix"
rm -rf include share/doc share/man share/ucx/examples lib/pkgconfig lib/cmake
find . \( -name '*.a' -o -name '*.la' \) -delete
# Compilers' wrappers, examples and tests of performance drag in libraries that a base may not have.
for file in bin/*; do
    case ${file##*/} in
    mpirun | mpiexec | orterun | orted | prte | prted | prterun | ompi_info | ucx_info) ;;
    *) rm -rf "$file" ;;
    esac
done

find bin lib -type f | while read -r file; do
    # Only dynamic ELF files have a run path to set.
    patchelf --print-rpath "$file" >/dev/null 2>&1 || continue
    depth=$(dirname "$file" | tr -dc / | wc -c)
    up=..
    while [ "$depth" -gt 0 ]; do
        up=$up/..
        depth=$((depth - 1))
    done
    # shellcheck disable=SC2016 # the loader expands $ORIGIN, not this shell
    origin='$ORIGIN'
    patchelf --force-rpath \
        --set-rpath "$origin/$up/lib:$origin/$up/lib/ucx:$origin/$up/lib/openmpi:$origin/$up/../rdma/lib:$origin/$up/../platform" \
        "$file"
    strip --strip-unneeded "$file"
done
