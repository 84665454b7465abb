# How every script of this project logs, fails, downloads and writes.
# shellcheck shell=bash disable=SC2034 # the scripts read what is set here

shopt -s inherit_errexit # what fails in $(...) fails the script
umask 022

STATE=/var/lib/azcp # on the VM's own disk: it must outlive a start, and the NVMe disks may not
# Becomes true as soon as something was written.
changed=false

log() {
    printf '%s %s: %s\n' "$(date -u +%FT%TZ)" "${0##*/}" "$*"
}

die() {
    log "FAILED: $*" >&2
    exit 1
}

need() {
    local command
    for command; do
        command -v "$command" >/dev/null || die "$command is not installed: put it into the VM's image"
    done
}

architecture() {
    local machine
    machine=$(uname -m)
    case $machine in
    x86_64 | aarch64) printf '%s\n' "$machine" ;;
    *) die "this project serves x86_64 and aarch64, this VM is $machine" ;;
    esac
}

digest() {
    local line
    line=$(sha256sum <"$1")
    printf '%s\n' "${line%% *}"
}

# remove_at_end FOLDER: what a script needs only while it runs.
remove_at_end() {
    at_end=$1
    trap 'rm -rf -- "$at_end"' EXIT
    trap 'exit 1' HUP INT TERM
}

# download URL SHA256 FILE: nothing gets the name FILE that has another digest.
download() {
    local url=$1 sha256=$2 file=$3 found
    log "downloads $url"
    curl --fail --silent --show-error --location --retry 5 --retry-connrefused \
        --connect-timeout 20 --max-time 900 --output "$file.part" -- "$url" || die "$url: no download"
    found=$(digest "$file.part")
    [[ $found == "$sha256" ]] || die "$url has the SHA-256 $found, and $sha256 was expected"
    mv -- "$file.part" "$file"
}

# write_file PATH TEXT: at once and only if it differs; behind a link it is the link's target.
write_file() {
    local path temporary
    path=$(readlink -m -- "$1")
    if [[ -f $path ]] && cmp --silent -- "$path" <(printf '%s\n' "$2"); then
        return
    fi
    mkdir -p -- "${path%/*}"
    # Slurm includes plugstack.conf.d/*, which a name with a dot in front is no part of.
    temporary=$(mktemp -- "${path%/*}/.${path##*/}.XXXXXX")
    printf '%s\n' "$2" >"$temporary"
    chmod 0644 -- "$temporary"
    mv -f -- "$temporary" "$path"
    changed=true
    log "wrote $path"
}
