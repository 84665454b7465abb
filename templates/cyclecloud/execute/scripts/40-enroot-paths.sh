#!/usr/bin/env bash
# Puts what enroot unpacks on the NVMe disks: an image is larger than /run, and than the memory that it would take.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/nvme.sh"
source "$here/settings.sh"

CONF=/etc/enroot/enroot.conf
BEGIN='# azcp: begin'
END='# azcp: end'

# folder PATH MODE: every user can make a folder in $NVME, so one that is there may not be root's.
folder() {
    [[ ! -L $1 ]] || die "$1 is a link"
    if [[ ! -d $1 ]]; then
        mkdir -m "$2" -- "$1"
        log "made $1"
    fi
    [[ $(stat -c %u -- "$1") == 0 ]] || die "$1 belongs to the user $(stat -c %U -- "$1"): remove it"
    [[ $(stat -c %a -- "$1") == "$2" ]] || chmod "$2" -- "$1"
}

block() {
    printf '%s\n' "$BEGIN" \
        "ENROOT_RUNTIME_PATH $NVME/enroot/runtime/user-\$(id -u)" \
        "ENROOT_CACHE_PATH $NVME/enroot/cache/user-\$(id -u)" \
        "ENROOT_DATA_PATH $NVME/enroot/data/user-\$(id -u)" \
        "ENROOT_TEMP_PATH $NVME/enroot/temp" \
        "$END"
}

# What others wrote there, without our lines of an earlier start.
others() {
    if [[ -f $CONF ]]; then
        awk -v begin="$BEGIN" -v end="$END" '$0 == begin { inside = 1 } !inside; $0 == end { inside = 0 }' "$CONF"
    fi
}

mountpoint --quiet -- "$NVME" || die "$NVME is not mounted, and neither the VM's disk nor memory takes its place"
device=$(findmnt --noheadings --output SOURCE --mountpoint "$NVME" | tail -n 1)
if ! has_our_files "$device"; then
    die "$NVME is a mount of $device, not the NVMe file system of this project"
fi
folder "$NVME/enroot" 755
folder "$NVME/enroot/pyxis" 755 # pyxis itself makes the users' folders there
for name in runtime cache data temp; do
    folder "$NVME/enroot/$name" 1777
done
# enroot takes the first value that it reads: ours come first, whoever wrote the file.
write_file "$CONF" "$(block && others)"
