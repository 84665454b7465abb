#!/bin/bash
# Imports the image of the job llama into a file that all nodes see; run it once, where the registry can be
# reached. A file that is there is left as it is: its name is the image's digest.
set -euo pipefail

file=/shared/images/train-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.sif
# How large the image is thought to be, unpacked: slurm.image-size.
size=32212254720

refuse() {
    printf 'azcp: %s\n' "$1" >&2
    exit 8
}
expect_free() {
    local free
    free=$(df --output=avail -B1 -- "$1" | tail -n 1)
    if ((free < $2)); then refuse "$1 has $free bytes free, and $2 are needed"; fi
}

folder=${file%/*}
mkdir -p -- "$folder"
exec 9>"$file.lock"
if ! flock -n 9; then
    echo 'azcp: another import of it goes on, which is waited for' >&2
    flock -w 7200 9 || refuse "$file.lock is held by another import"
fi
if [[ -s $file ]]; then
    echo "azcp: $file is there already" >&2
    exit
fi

# The layers, their content and the result lie side by side for a while. Not on the shared file system: what
# unpacks them makes many small files, and locks them.
work=$(mktemp -d -- "${TMPDIR:-/tmp}/azcp-import.XXXXXXXX")
trap 'rm -rf -- "$work" "$file.part"' EXIT
trap 'exit 75' HUP INT TERM
expect_free "$work" $((3 * size))
expect_free "$folder" "$size"
rm -f -- "$file.part"
mkdir -- "$work/tmp" "$work/cache"
APPTAINER_TMPDIR=$work/tmp APPTAINER_CACHEDIR=$work/cache \
    apptainer pull "$file.part" docker://registry.example/train@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
# All of it, or nothing.
sync -- "$file.part"
mv -- "$file.part" "$file"
echo "azcp: $file" >&2
