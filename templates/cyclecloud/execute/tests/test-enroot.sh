#!/usr/bin/env bash
# Whether enroot is there in the given version and keeps its files on the NVMe disks.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/enroot.sh"
source "$here/settings.sh"

kind=$(package_kind)
package_names=$(wanted_packages "$kind")
mapfile -t packages <<<"$package_names"
are_installed "$kind" "${packages[@]}" || die "not installed: ${packages[*]}"
for variable in RUNTIME CACHE DATA TEMP; do
    # enroot takes the first value.
    first=$(grep -m 1 "^ENROOT_${variable}_PATH" /etc/enroot/enroot.conf) || die "ENROOT_${variable}_PATH is not set"
    [[ $first == "ENROOT_${variable}_PATH $NVME/"* ]] || die "$first is not on $NVME"
done
log "${packages[*]} are installed, with their files on $NVME"
