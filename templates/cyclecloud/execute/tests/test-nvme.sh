#!/usr/bin/env bash
# Whether the NVMe file system of this project is mounted, open to users and written to.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/nvme.sh"
source "$here/settings.sh"

mountpoint --quiet -- "$NVME" || die "$NVME is not mounted"
device=$(findmnt --noheadings --output SOURCE --mountpoint "$NVME" | tail -n 1)
has_our_files "$device" || die "$NVME is a mount of $device, not the NVMe file system of this project"
mode=$(stat -c %a -- "$NVME")
[[ $mode == 1777 ]] || die "$NVME has the mode $mode, not 1777"
probe=$(mktemp -- "$NVME/.probe.XXXXXX")
trap 'rm -f -- "$probe"' EXIT
head --bytes=1048576 /dev/zero >"$probe"
sync -- "$probe"
log "$device is mounted on $NVME, and can be written to"
