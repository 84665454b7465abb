# Which packages of enroot belong on this VM, and whether they are there.
# shellcheck shell=bash

package_kind() {
    if command -v dpkg >/dev/null; then
        printf 'deb\n'
    elif command -v rpm >/dev/null; then
        printf 'rpm\n'
    else
        die "enroot is released as deb and rpm, and this VM takes neither"
    fi
}

# wanted_packages deb|rpm: those of this architecture, one a line.
wanted_packages() {
    local package machine
    machine=$(architecture)
    case $1-$machine in
    deb-x86_64) machine=amd64 ;;
    deb-aarch64) machine=arm64 ;;
    esac
    for package in "${!ENROOT_SHA256[@]}"; do
        if [[ $package == *[._]"$machine.$1" ]]; then
            printf '%s\n' "$package"
        fi
    done | sort
}

# is_installed deb|rpm PACKAGE: the version is in the file's name.
is_installed() {
    local name version found
    if [[ $1 == deb ]]; then
        IFS=_ read -r name version _ <<<"$2"
        # shellcheck disable=SC2016 # dpkg-query's own variables
        found=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}' "$name" 2>/dev/null) || return 1
        [[ $found == "installed $version" ]]
    else
        found=$(rpm --query --queryformat '%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' "${2%%-[0-9]*}") || return 1
        [[ $found == "$2" ]]
    fi
}

are_installed() {
    local kind=$1 package
    shift
    for package; do
        is_installed "$kind" "$package" || return 1
    done
}
