#!/usr/bin/env bash
# Refuses a VM that the other scripts cannot serve, before any of them has changed something.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/settings.sh"

((EUID == 0)) || die "these scripts run as root"
machine=$(architecture)
need curl sha256sum tar awk cmp mktemp readlink stat
[[ -d $SHARED ]] || die "$SHARED is not there: the scheduler and its nodes must share a folder (cyclecloud.shared)"
read -r owner mode < <(stat -c '%u %a' -- "$SHARED")
[[ $owner == 0 ]] || die "$SHARED does not belong to root, and root loads what is handed over in it"
if (((8#$mode & 8#22) != 0 && (8#$mode & 8#1000) == 0)); then
    die "$SHARED can be written to by everybody (mode $mode), and root loads what is handed over in it"
fi
log "this VM is $machine and sees $SHARED"
