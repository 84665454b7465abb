# pyxis is built once per Slurm version and architecture, and handed over in the shared folder.
# shellcheck shell=bash disable=SC2034 # the scripts read what is set here

PLUGIN=/opt/azcp/pyxis/spank_pyxis.so
PLUGSTACK=/etc/slurm/plugstack.conf
PLUGSTACK_FOLDER=/etc/slurm/plugstack.conf.d

slurm_version() {
    local said
    command -v srun >/dev/null || die "Slurm is not installed: in the cluster's template its cluster-init comes first"
    said=$(srun --version) || die "srun runs only once Slurm is configured: its cluster-init comes first"
    printf '%s\n' "${said##* }"
}

# What one build fits: Slurm loads no plugin that was built for another release of it.
build_name() {
    printf 'pyxis-%s_slurm-%s_%s\n' "$PYXIS_VERSION" "$1" "$2"
}

hand_over_folder() {
    printf '%s/azcp/%s\n' "$SHARED" "$PROJECT"
}

# Root's processes load what lies there: nobody else may be able to put it there.
expect_root_only() {
    local path mode
    for path; do
        [[ ! -L $path && $(stat -c %u -- "$path") == 0 ]] ||
            die "$path does not belong to root; nothing is loaded from it"
        mode=$(stat -c %a -- "$path")
        (((8#$mode & 8#22) == 0)) ||
            die "$path can be written to by others than root (mode $mode); nothing is loaded from it"
    done
}

# offered NAME: the digest of a plugin that is complete; empty for none. The digest file comes last.
offered() {
    local base sha256
    base=$(hand_over_folder)/$1
    [[ -f $base.sha256 ]] || return 0
    expect_root_only "$SHARED/azcp" "$(hand_over_folder)" "$base.sha256"
    sha256=$(<"$base.sha256")
    [[ $sha256 =~ ^[0-9a-f]{64}$ && -f $base.$sha256.so ]] || return 0
    expect_root_only "$base.$sha256.so"
    if [[ $(digest "$base.$sha256.so") == "$sha256" ]]; then
        printf '%s\n' "$sha256"
    fi
}

# build NAME WORK: from the checked source, in a folder of its own, then offered to every node.
build() {
    local work=$2 prefix sha256 base folder
    need curl sha256sum make gcc tar strip
    prefix=$(command -v srun)
    prefix=${prefix%/bin/srun}
    [[ -f $prefix/include/slurm/spank.h ]] ||
        die "$prefix/include/slurm/spank.h is not there: pyxis needs the development package of Slurm"
    download "$PYXIS_URL" "$PYXIS_SHA256" "$work/pyxis.tar.gz"
    tar --extract --gzip --file="$work/pyxis.tar.gz" --directory="$work" --no-same-owner
    log "builds $1"
    # By the environment: the Makefile adds to it, and would not to an argument.
    if ! CPPFLAGS="-I$prefix/include" \
        make --directory="$work/pyxis-$PYXIS_VERSION" spank_pyxis.so >"$work/make.log" 2>&1; then
        cat -- "$work/make.log" >&2
        die "pyxis $PYXIS_VERSION does not build"
    fi
    folder=$(hand_over_folder)
    mkdir -p -- "$SHARED/azcp" "$folder"
    expect_root_only "$SHARED/azcp" "$folder"
    sha256=$(digest "$work/pyxis-$PYXIS_VERSION/spank_pyxis.so")
    base=$folder/$1
    give "$work/pyxis-$PYXIS_VERSION/spank_pyxis.so" "$base.$sha256.so"
    printf '%s\n' "$sha256" >"$work/sha256"
    give "$work/sha256" "$base.sha256"
    log "handed over $base.sha256"
}

# give FILE PATH: at once, on another file system.
give() {
    local temporary
    temporary=$(mktemp -- "${2%/*}/.${2##*/}.XXXXXX")
    cp -- "$1" "$temporary"
    chmod 0644 -- "$temporary"
    sync -- "$temporary"
    mv -f -- "$temporary" "$2"
}

# install_plugin NAME SHA256: a copy on this VM, so that no job waits for the shared folder.
install_plugin() {
    local temporary
    if [[ -f $PLUGIN && $(digest "$PLUGIN") == "$2" ]]; then
        log "$PLUGIN is in place"
        return
    fi
    mkdir -p -- "${PLUGIN%/*}"
    temporary=$(mktemp -- "${PLUGIN%/*}/.spank_pyxis.XXXXXX")
    cp -- "$(hand_over_folder)/$1.$2.so" "$temporary"
    [[ $(digest "$temporary") == "$2" ]] || die "$1 changed while it was copied"
    chmod 0644 -- "$temporary"
    mv -f -- "$temporary" "$PLUGIN"
    changed=true
    log "installed $PLUGIN ($1)"
}

# Slurm refuses a plugin's options that are there twice.
expect_one_pyxis() {
    local file
    for file in "$PLUGSTACK" "$PLUGSTACK_FOLDER"/*; do
        [[ -f $file && $file != "$PLUGSTACK_FOLDER/pyxis.conf" ]] || continue
        if grep -q '^[^#]*spank_pyxis\.so' -- "$file"; then
            die "$file loads another pyxis: remove that line"
        fi
    done
}

# configure OPTIONS: of the plugin.
configure() {
    local include="include $PLUGSTACK_FOLDER/*" text
    expect_one_pyxis
    write_file "$PLUGSTACK_FOLDER/pyxis.conf" "required $PLUGIN${1:+ $1}"
    if [[ ! -s $PLUGSTACK ]]; then
        write_file "$PLUGSTACK" "$include"
    elif ! grep -q "^[[:space:]]*include[[:space:]].*/plugstack\.conf\.d/" -- "$PLUGSTACK"; then
        text=$(<"$PLUGSTACK")
        write_file "$PLUGSTACK" "$text"$'\n'"$include"
    fi
}

# expect_pyxis: for the tests folder.
expect_pyxis() {
    local slurm machine name sha256 options
    slurm=$(slurm_version)
    machine=$(architecture)
    name=$(build_name "$slurm" "$machine")
    sha256=$(offered "$name")
    [[ -n $sha256 ]] || die "$name is not in $(hand_over_folder)"
    [[ -f $PLUGIN && $(digest "$PLUGIN") == "$sha256" ]] || die "$PLUGIN is not the plugin that was handed over"
    options=$(srun --help)
    [[ $options == *--container-image* ]] || die "srun does not load $PLUGIN"
    log "$name is in place, and srun knows --container-image"
}
