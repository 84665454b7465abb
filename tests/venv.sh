#!/bin/sh
# Make the virtual environment that every make target runs in: tests/venv.sh DIR
set -eu

venv=$1
here=$(cd "$(dirname "$0")" && pwd)

"${PYTHON:-python3}" -m venv "$venv"

# npm and pip work on different machines' time; side by side they halve the wait.
azurite_pid=
if command -v npm >/dev/null 2>&1; then
    mkdir -p "$venv/azurite"
    cp "$here/azurite/package.json" "$here/azurite/package-lock.json" "$venv/azurite/"
    npm ci --prefix "$venv/azurite" --no-audit --no-fund --ignore-scripts --loglevel=error >"$venv/azurite.log" 2>&1 &
    azurite_pid=$!
else
    echo "npm is not installed: the demo and the tests do without the Azurite Blob emulator" >&2
fi

"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$here/requirements.txt"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable "$here/.."

if [ -n "$azurite_pid" ] && ! wait "$azurite_pid"; then
    cat "$venv/azurite.log" >&2
    echo "npm could not install Azurite (its log is above): the demo and the tests do without it" >&2
    rm -rf "$venv/azurite"
fi
