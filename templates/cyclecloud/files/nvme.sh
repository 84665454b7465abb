# What is on the local NVMe disks, and whether this project made it.
# shellcheck shell=bash disable=SC2034 # the scripts read what is set here

LABEL=azcp-nvme # of the file system, and the name of the array
BEGUN=$STATE/nvme.begun

# Disks of the VM's own. Data disks are NVMe too on some sizes; their model is another one.
local_disks() {
    local folder disk model
    for folder in /sys/block/nvme*; do
        disk=/dev/${folder##*/}
        [[ -b $disk && -r $folder/device/model ]] || continue
        model=$(<"$folder/device/model")
        if [[ $model == "Microsoft NVMe Direct Disk"* ]]; then
            printf '%s\n' "$disk"
        fi
    done | sort --version-sort
}

# tag DEVICE NAME: what the device itself says, without the cache; empty for nothing.
tag() {
    local status=0 found
    found=$(blkid --probe --output export -- "$1") || status=$?
    case $status in
    0) sed -n "s/^$2=//p" <<<"$found" ;;
    2) ;; # no signature
    *) die "blkid cannot tell what is on $1 (status $status)" ;;
    esac
}

has_our_files() {
    [[ -b $1 && $(tag "$1" TYPE) == xfs && $(tag "$1" LABEL) == "$LABEL" ]]
}

# member_of DISK: UUID, level and number of disks of our array that the disk belongs to; empty for none.
member_of() {
    local found name
    [[ $(tag "$1" TYPE) == linux_raid_member ]] || return 0
    found=$(mdadm --examine --export "$1") || return 0
    name=$(sed -n 's/^MD_NAME=//p' <<<"$found")
    # mdadm puts the host's name in front.
    [[ ${name##*:} == "$LABEL" ]] || return 0
    sed -n 's/^MD_UUID=//p; s/^MD_LEVEL=//p; s/^MD_DEVICES=//p' <<<"$found" | sort | tr '\n' ' '
}

# The array above the disk, if the kernel has assembled it already.
assembled() {
    local holder
    for holder in "/sys/block/${1#/dev/}"/holders/md*; do
        [[ -e $holder ]] || continue
        printf '/dev/%s\n' "${holder##*/}"
        return
    done
}

is_zero() {
    local size
    size=$(blockdev --getsize64 "$1")
    cmp --silent --bytes=$((16 << 20)) -- "$1" /dev/zero &&
        cmp --silent --ignore-initial=$((size - (1 << 20))):0 --bytes=$((1 << 20)) -- "$1" /dev/zero
}

# Empty for a disk on which nothing is; otherwise what is on it. Data can lie on a disk without any signature.
contents() {
    local disk=$1 name=${1#/dev/} kind
    kind=$(tag "$disk" TYPE)
    [[ -n $kind ]] || kind=$(tag "$disk" PTTYPE)
    if [[ -n $kind ]]; then
        printf '%s\n' "$kind"
    elif compgen -G "/sys/block/$name/${name}p*" >/dev/null; then
        printf 'partitions\n'
    elif compgen -G "/sys/block/$name/holders/*" >/dev/null; then
        printf 'something that holds it\n'
    elif [[ -n $(wipefs --no-act --noheadings -- "$disk") ]]; then
        printf 'a signature\n'
    elif ! is_zero "$disk"; then
        printf 'data without a signature\n'
    fi
}

# Tells this very disk from the one that the VM gets on another host.
identity() {
    local serial size
    serial=$(<"/sys/block/${1#/dev/}/device/serial")
    size=$(blockdev --getsize64 "$1")
    printf '%s %s\n' "${serial// /}" "$size"
}

identities() {
    local disk
    for disk; do
        identity "$disk"
    done
}
