#!/bin/sh
# Compile the verbs library and its providers for Azure's and NVIDIA's adapters from an archive, into one prefix.
set -eu

archive=$1
prefix=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/source" "$work/build"
tar -xf "$archive" -C "$work/source" --strip-components=1
cd "$work/build"

# The prefix is compiled in: providers are looked for there alone, never among those of the base.
cmake ../source -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_SYSCONFDIR="$prefix/etc" -DCMAKE_INSTALL_RUNDIR=/run -DENABLE_STATIC=0 \
    -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 >/dev/null
wanted="ibverbs rdmacm mlx5"
for provider in mana efa; do
    [ -d "../source/providers/$provider" ] && wanted="$wanted $provider"
done
# shellcheck disable=SC2086 # a list of targets
make -j "$(nproc)" $wanted

mkdir -p "$prefix/lib/libibverbs" "$prefix/etc/libibverbs.d"
for name in $wanted; do
    library=$(find lib -name "lib$name.so.1" | head -n 1)
    [ -n "$library" ] && cp -L "$library" "$prefix/lib/"
    # The library asks for a provider by a name that carries its private interface's version.
    for plugin in lib/lib"$name"-rdmav*.so; do
        [ -e "$plugin" ] || continue
        if [ -e "$prefix/lib/lib$name.so.1" ]; then
            ln -s "../lib$name.so.1" "$prefix/lib/libibverbs/${plugin##*/}"
        else
            cp -L "$plugin" "$prefix/lib/libibverbs/"
        fi
        echo "driver $name" >"$prefix/etc/libibverbs.d/$name.driver"
    done
done
for name in libnl-3.so.200 libnl-route-3.so.200; do
    cp -L "$(find /lib /usr/lib -name "$name" | head -n 1)" "$prefix/lib/"
done

find "$prefix/lib" -type f | while read -r file; do
    strip --strip-unneeded "$file"
    # shellcheck disable=SC2016 # the loader expands $ORIGIN, not this shell
    patchelf --force-rpath --set-rpath '$ORIGIN:$ORIGIN/..' "$file"
done
test -e "$prefix/lib/libmlx5.so.1"
