#!/bin/bash
# Imports the images of the job llama into files that all nodes see; run it once, where the registry can
# be reached. A file that is there is left as it is: its name is the image's digest.
set -euo pipefail

files=(
    /shared/images/fetch-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.sqsh
    /shared/images/train-fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210.sqsh
)
uris=(
    'docker://registry.example#fetch:sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'
    'docker://registry.example#train:sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210'
)
# How large an image is thought to be, unpacked: slurm.image-size.
size=21474836480

refuse() {
    printf 'azcp: %s\n' "$1" >&2
    exit 8
}
expect_free() {
    local free
    free=$(df --output=avail -B1 -- "$1" | tail -n 1)
    if ((free < $2)); then refuse "$1 has $free bytes free, and $2 are needed"; fi
}

work=
part=
trap 'rm -rf -- ${work:+"$work"} ${part:+"$part"}' EXIT
trap 'exit 75' HUP INT TERM

for at in "${!files[@]}"; do
    file=${files[at]}
    folder=${file%/*}
    mkdir -p -- "$folder"
    exec 9>"$file.lock"
    if ! flock -n 9; then
        echo 'azcp: another import of it goes on, which is waited for' >&2
        flock -w 7200 9 || refuse "$file.lock is held by another import"
    fi
    if [[ -s $file ]]; then
        echo "azcp: $file is there already" >&2
        continue
    fi

    # The layers, their content and the result lie side by side for a while. Not on the shared file system: what
    # unpacks them makes many small files, and locks them.
    work=$(mktemp -d -- "${TMPDIR:-/tmp}/azcp-import.XXXXXXXX")
    part=$file.part
    expect_free "$work" $((3 * size))
    expect_free "$folder" "$size"
    rm -f -- "$part"
    mkdir -- "$work/tmp" "$work/cache"
    ENROOT_TEMP_PATH=$work/tmp ENROOT_CACHE_PATH=$work/cache enroot import --output "$part" "${uris[at]}"
    # All of it, or nothing.
    sync -- "$part"
    mv -- "$part" "$file"
    rm -rf -- "$work"
    echo "azcp: $file" >&2
done
