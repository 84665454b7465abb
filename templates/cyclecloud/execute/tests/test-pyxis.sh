#!/usr/bin/env bash
# Whether this node has the plugin that was handed over, and srun loads it.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/pyxis.sh"
source "$here/settings.sh"

expect_pyxis
grep -qF -- "runtime_path=$NVME/enroot/pyxis" "$PLUGSTACK_FOLDER/pyxis.conf" ||
    die "pyxis keeps what it unpacks elsewhere than on $NVME"
