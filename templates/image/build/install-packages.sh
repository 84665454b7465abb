#!/bin/sh
# Install Debian packages and leave neither lists nor archives behind; what is installed already stays as it is.
# --own-sources FILE: consult this sources file alone, so that a third-party source that is down breaks nothing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial"

# Of a private CA, where one was given: it lies beside this script in the builder's stages alone.
ca=$(dirname "$0")/ca.pem
[ -e "$ca" ] || ca=

sources=
if [ "${1:-}" = --own-sources ]; then
    sources=$2
    shift 2
fi

# Passwords of a mirror, where they were given as --secret apt_auth=FILE.
auth=/run/secrets/apt_auth
[ -r "$auth" ] || auth=

# Folders of its own for lists and archives: those of the base are neither needed nor changed.

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq \
        -o "Dir::State::lists=$work/lists" \
        -o "Dir::Cache::archives=$work/archives" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
        -o APT::Sandbox::User=root \
        ${auth:+-o "Dir::Etc::netrc=$auth"} \
        ${ca:+-o "Acquire::https::CaInfo=$ca"} \
        ${sources:+-o "Dir::Etc::sourcelist=$sources" -o Dir::Etc::sourceparts=/dev/null} \
        "$@"
}

apt update
had_keys=$(ls /etc/ssh/ssh_host_*_key 2>/dev/null || true)
apt install -y --no-install-recommends "$@"
# openssh-server makes host keys when it is installed: in a layer every user of the image would have them.
[ -n "$had_keys" ] || rm -f /etc/ssh/ssh_host_*_key /etc/ssh/ssh_host_*_key.pub
rm -rf /tmp/azcp-build
