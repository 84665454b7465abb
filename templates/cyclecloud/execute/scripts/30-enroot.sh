#!/usr/bin/env bash
# Installs enroot at the given version from its release packages, each checked before anything is installed.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/enroot.sh"
source "$here/settings.sh"

install_packages() {
    log "installs ${packages[*]}"
    cd -- "$work"
    if [[ $kind == deb ]]; then
        export DEBIAN_FRONTEND=noninteractive
        if [[ -n $(dpkg --audit) ]]; then
            log "finishes an installation that was ended on the way"
            dpkg --force-confold --configure -a
        fi
        apt-get -q update
        apt-get -qy --no-install-recommends --allow-downgrades \
            -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold install "${packages[@]/#/./}"
    else
        dnf -qy install "${packages[@]/#/./}"
    fi
}

need curl sha256sum
kind=$(package_kind)
package_names=$(wanted_packages "$kind")
[[ -n $package_names ]] ||
    die "job.toml names no $kind package of enroot for $(architecture) in cyclecloud.enroot-sha256"
mapfile -t packages <<<"$package_names"
if are_installed "$kind" "${packages[@]}"; then
    log "installed already: ${packages[*]}"
    exit 0
fi
work=$(mktemp -d)
remove_at_end "$work"
for package in "${packages[@]}"; do
    download "$ENROOT_URL/$package" "${ENROOT_SHA256[$package]}" "$work/$package"
done
install_packages
are_installed "$kind" "${packages[@]}" || die "after the installation another version is there"
