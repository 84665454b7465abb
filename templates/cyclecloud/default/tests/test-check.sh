#!/usr/bin/env bash
# Whether this VM is one that the project serves; 10-check.sh changes nothing.
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../scripts" && pwd)
"$here/10-check.sh"
