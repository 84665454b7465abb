#!/usr/bin/env bash
# Takes pyxis over from the scheduler, waiting for it no longer than the deadline, and lets slurmd load it.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/pyxis.sh"
source "$here/settings.sh"

PENDING=$STATE/slurmd.pending
POLL_S=2

# Whether the scheduler builds for this Slurm, but for another architecture than this node's.
is_other_architecture() {
    local file theirs
    file=$(hand_over_folder)/scheduler
    [[ -f $file ]] || return 1
    theirs=$(<"$file")
    [[ $theirs != "$name" && $theirs == "$(build_name "$slurm" '')"* ]]
}

missing() {
    local folder there
    folder=$(hand_over_folder)
    there=$(find "$folder" -maxdepth 1 -name '*.sha256' ! -name '.*' -printf '%f ' 2>/dev/null) || true
    printf '%s was not handed over within %s s: %s holds %s; see the log of 20-pyxis-build.sh on the scheduler' \
        "$name" "$DEADLINE_S" "$folder" "${there:-nothing}"
}

# Sets sha256.
wait_for_plugin() {
    local end=$((SECONDS + DEADLINE_S)) is_told=false
    while true; do
        sha256=$(offered "$name")
        [[ -z $sha256 ]] || return 0
        if is_other_architecture; then
            work=$(mktemp -d)
            remove_at_end "$work"
            build "$name" "$work"
            continue
        fi
        ((SECONDS < end)) || die "$(missing)"
        if ! "$is_told"; then
            log "waits up to $DEADLINE_S s for $name in $(hand_over_folder)"
            is_told=true
        fi
        sleep "$POLL_S"
    done
}

restart_slurmd() {
    if systemctl is-active --quiet slurmd; then
        log "restarts slurmd"
        systemctl restart slurmd
    else
        log "slurmd does not run yet, and will find pyxis when it starts"
    fi
}

slurm=$(slurm_version)
machine=$(architecture)
name=$(build_name "$slurm" "$machine")
wait_for_plugin
# It stays where a run is ended between a change and the restart.
mkdir -p -- "$STATE"
[[ ! -e $PENDING ]] || changed=true
: >"$PENDING"
install_plugin "$name" "$sha256"
configure "runtime_path=$NVME/enroot/pyxis"
if "$changed"; then
    restart_slurmd
fi
rm -f -- "$PENDING"
