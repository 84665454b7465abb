#!/usr/bin/env bash
# Lets sbatch and srun on the scheduler know pyxis' options.
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
[[ -n $sha256 ]] || die "$name is not in $(hand_over_folder): 20-pyxis-build.sh comes first"
install_plugin "$name" "$sha256"
configure ""
