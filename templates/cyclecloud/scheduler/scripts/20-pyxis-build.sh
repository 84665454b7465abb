#!/usr/bin/env bash
# Builds pyxis for this cluster's Slurm and hands it to the nodes, unless that was done at an earlier start.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/pyxis.sh"
source "$here/settings.sh"

slurm=$(slurm_version)
machine=$(architecture)
name=$(build_name "$slurm" "$machine")
sha256=$(offered "$name")
if [[ -n $sha256 ]]; then
    log "$name is handed over already"
else
    work=$(mktemp -d)
    remove_at_end "$work"
    build "$name" "$work"
fi
# Nodes of another architecture see by it that they must build their own.
write_file "$(hand_over_folder)/scheduler" "$name"
