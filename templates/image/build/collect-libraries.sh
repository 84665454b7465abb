#!/bin/sh
# Copy shared libraries of this image, by name, into one folder: collect-libraries.sh FOLDER NAME...
set -eu

target=$1
shift
mkdir -p "$target"
for name in "$@"; do
    found=$(find /lib /usr/lib -name "$name" | head -n 1)
    if [ -z "$found" ]; then
        echo "the builder image has no $name" >&2
        exit 1
    fi
    cp -L "$found" "$target/$name"
    chmod 755 "$target/$name"
done
