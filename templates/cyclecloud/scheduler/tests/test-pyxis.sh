#!/usr/bin/env bash
# Whether pyxis is handed over whole, and srun on the scheduler knows its options.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/pyxis.sh"
source "$here/settings.sh"

expect_pyxis
