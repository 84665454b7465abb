#!/usr/bin/env bash
# Stripes the local NVMe disks and mounts them. Formats only disks on which nothing is: what it did not make, it
# names and leaves. Each start is the same: after a stop the disks are other, empty ones; after a reboot not.
# shellcheck disable=SC1091 # its own files, beside it on the VM
set -euo pipefail
here=$(cd -- "${BASH_SOURCE[0]%/*}/../files" && pwd)
source "$here/common.sh"
source "$here/nvme.sh"
source "$here/settings.sh"

FSTAB=/etc/fstab
# nofail: a VM whose disks are new must start all the same, or this script cannot run.
ENTRY="LABEL=$LABEL $NVME xfs noatime,nofail,x-systemd.device-timeout=60s 0 2"
ARRAY=/dev/md/$LABEL

refuse_foreign() {
    local disk what found=()
    for disk in "${disks[@]}"; do
        what=$(contents "$disk")
        [[ -z $what ]] || found+=("$disk ($what)")
    done
    if ((${#found[@]})); then
        die "not made by this project, and not touched: ${found[*]}; empty them by hand if nobody needs what is there"
    fi
}

# Whether an earlier run was ended while it made the file system on these very disks.
was_begun() {
    [[ -f $BEGUN ]] && cmp --silent -- "$BEGUN" <(identities "${disks[@]}")
}

# What such a run leaves behind, and nothing else, may be written over.
expect_remains() {
    local device=$1 kind
    kind=$(tag "$device" TYPE)
    [[ -n $kind ]] || kind=$(tag "$device" PTTYPE)
    case $kind in
    '') ;;
    xfs)
        has_our_files "$device" || die "$device has an xfs that this project did not make; it is not touched"
        ;;
    linux_raid_member)
        [[ -n $(member_of "$device") ]] || die "$device belongs to another array; it is not touched"
        ;;
    *) die "$device ($kind) was written to by somebody else since; it is not touched" ;;
    esac
}

# Whether every disk is part of one array of ours, and none of its disks is missing.
is_our_array() {
    local disk array members
    array=$(member_of "${disks[0]}")
    [[ -n $array ]] || return 1
    for disk in "${disks[@]}"; do
        members=$(member_of "$disk")
        [[ $members == "$array" ]] || return 1
    done
    [[ " $array" == *" ${#disks[@]} "* && " $array" == *" raid0 "* ]]
}

assemble() {
    device=$(assembled "${disks[0]}")
    if [[ -n $device ]]; then
        log "the kernel has assembled $device"
        return
    fi
    log "assembles $ARRAY from ${disks[*]}"
    mdadm --assemble "$ARRAY" "${disks[@]}" || die "the array of ${disks[*]} cannot be assembled"
    device=$ARRAY
}

create_array() {
    local options=()
    # Without --run mdadm asks where it finds something, and takes the end of its input for no.
    [[ $1 == begun ]] && options=(--run)
    log "makes $ARRAY of ${disks[*]}"
    mdadm --create "$ARRAY" --level=0 --raid-devices="${#disks[@]}" --metadata=1.2 --name="$LABEL" \
        --homehost=any "${options[@]}" "${disks[@]}" </dev/null || die "mdadm makes no array of ${disks[*]}"
    device=$ARRAY
}

# A file system that mkfs.xfs did not finish cannot be mounted; one that can may hold data by now.
is_whole() {
    has_our_files "$device" || return 1
    mkdir -p -- "$NVME"
    mount -t xfs -o ro "$device" "$NVME" 2>/dev/null || return 1
    umount -- "$NVME"
}

# make_files begun|blank: the only place where a disk is written to.
make_files() {
    local disk options=()
    if [[ $1 == begun ]]; then
        log "an earlier run was ended on the way: begins again"
        for disk in "${disks[@]}"; do
            expect_remains "$disk"
        done
        options=(-f)
    else
        write_file "$BEGUN" "$(identities "${disks[@]}")"
        sync -- "$BEGUN" "$STATE"
    fi
    if ((${#disks[@]} == 1)); then
        device=${disks[0]}
    elif [[ $1 == begun ]] && is_our_array; then
        assemble
        expect_remains "$device"
    else
        create_array "$1"
        options=(-f) # a new array shows what lay on its disks, which was looked at above
    fi
    if [[ $1 == begun ]] && is_whole; then
        log "the file system on $device was finished"
    else
        log "makes an xfs on $device"
        mkfs.xfs -q -L "$LABEL" "${options[@]}" "$device"
        sync
    fi
    rm -f -- "$BEGUN"
}

find_or_make() {
    if was_begun; then
        make_files begun
    elif ((${#disks[@]} == 1)) && has_our_files "${disks[0]}"; then
        device=${disks[0]}
    elif ((${#disks[@]} > 1)) && is_our_array; then
        assemble
        has_our_files "$device" || die "$device has no file system of this project's; it is not touched"
    else
        refuse_foreign
        make_files blank
    fi
}

expect_free_entry() {
    local other
    other=$(awk -v point="$NVME" -v own="LABEL=$LABEL" '!/^[[:space:]]*#/ && $2 == point && $1 != own' "$FSTAB")
    [[ -z $other ]] || die "$FSTAB mounts something else on $NVME: $other"
}

# A mount that is there before any service starts: no job may find the empty folder below it.
write_entry() {
    write_file "$FSTAB" "$(
        awk -v own="LABEL=$LABEL" '$1 != own' "$FSTAB"
        printf '%s\n' "$ENTRY"
    )"
}

# Like /tmp: jobs of every user make folders of their own here, and nobody removes another's. The folder
# below the mount keeps 0755, so that without the disks a job fails at once and does not fill the VM's disk.
open_to_users() {
    if [[ $(stat -c %a -- "$NVME") != 1777 ]]; then
        chmod 1777 -- "$NVME"
        log "$NVME is open to every user, as /tmp is"
    fi
}

need blkid wipefs blockdev findmnt mountpoint mkfs.xfs awk cmp
touch -a -- "$FSTAB"
expect_free_entry
if mountpoint --quiet -- "$NVME"; then
    device=$(findmnt --noheadings --output SOURCE --mountpoint "$NVME" | tail -n 1)
    if ! has_our_files "$device"; then
        die "$NVME is a mount of $device, which this project did not make"
    fi
    rm -f -- "$BEGUN" # what can be mounted is whole
    log "$device is mounted on $NVME already"
else
    disk_names=$(local_disks)
    [[ -n $disk_names ]] ||
        die "this VM has no local NVMe disk, and nothing else takes its place: choose another VM size"
    mapfile -t disks <<<"$disk_names"
    ((${#disks[@]} == 1)) || need mdadm
    find_or_make
    mkdir -p -- "$NVME"
    mount -t xfs -o noatime "$device" "$NVME"
    log "mounted $device on $NVME"
fi
write_entry
open_to_users
