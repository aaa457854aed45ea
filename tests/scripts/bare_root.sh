#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows that a bare machine is enough: in a minimal Debian root (debootstrap, variant minbase: no
# compiler, no git, no sudo) runs `./bootstrap demo` and `./bootstrap test` on a copy of this tree.
#
#   bare_root.sh LOG [TARGET...]
#
# Needs root, debootstrap and the machine's package mirror, which is the first one of its apt
# sources that has the release; KDTR_BARE_MIRROR names another, KDTR_BARE_SUITE another release than
# bookworm. The bare system is kept as out/bare-root/SUITE.tar. Not a part of `ninja test`.
set -u
log=$1
shift
[ $# -gt 0 ] || set -- demo test
suite=${KDTR_BARE_SUITE:-bookworm}
work=out/bare-root
root=$work/root
cache=$work/$suite.tar
must_be_absent="cc gcc g++ clang ninja make git sudo python3 less xz bc gpg"

fail() {
    echo "bare-root: $*" >&2
    exit 2
}

# Unmounts and removes a root; never removes a tree with something mounted in it.
remove_root() {
    [ -d "$1" ] || return 0
    if mountpoint -q "$1/proc"; then
        umount "$1/proc" || return 1
    fi
    rm -rf --one-file-system "$1"
}

find_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }'
}

# The bare system as a tar: debootstrap once, unpacked for every run.
make_cache() {
    mirror=${KDTR_BARE_MIRROR:-$(find_mirror)}
    [ -n "$mirror" ] || fail "no apt source of this machine has $suite; set KDTR_BARE_MIRROR"
    remove_root "$work/new" || exit 2
    debootstrap --variant=minbase "$suite" "$work/new" "$mirror" > "$work/debootstrap.log" 2>&1 ||
        fail "debootstrap failed: $work/debootstrap.log"
    rm -rf "$work/new/var/cache/apt/archives/"*.deb
    tar --numeric-owner -C "$work/new" -cf "$cache.part" . || fail "no tar of $work/new"
    mv "$cache.part" "$cache"
    remove_root "$work/new"
}

make_root() {
    remove_root "$root" || exit 2
    mkdir -p "$root"
    tar --numeric-owner -xpf "$cache" -C "$root" || fail "$cache cannot be unpacked"
    mkdir -p "$root/src"
    git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
        [ ! -f "$file" ] || printf '%s\n' "$file"
    done > "$work/files"
    tar -cf - -T "$work/files" | tar --no-same-owner -xf - -C "$root/src" ||
        fail "the tree cannot be copied"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    mount -t proc proc "$root/proc" || fail "/proc cannot be mounted"
}

inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C chroot "$root" sh -c "$1"
}

# What the log says of the system before anything is installed.
describe() {
    echo "suite $suite $(inside 'cat /etc/debian_version')"
    echo "commit $(git rev-parse HEAD 2> /dev/null || echo unknown)"
    echo "sources_sha256 $(sh tests/scripts/source_hash.sh)"
    echo "date $(date -u +%Y-%m-%d)"
    echo "packages $(inside "dpkg-query -W -f 'x\n' | wc -l")"
    echo "sh $(inside 'readlink -f /bin/sh'), awk $(inside 'readlink -f /usr/bin/awk')"
    for program in $must_be_absent; do
        if inside "command -v $program" > /dev/null; then
            echo "not ok bare root: it already has $program"
            return 1
        fi
    done
    echo "ok bare root: it has none of $must_be_absent"
}

run_targets() {
    describe || return 1
    failed=0
    for target in "$@"; do
        start=$(date +%s)
        echo "==== ./bootstrap $target"
        inside "cd /src && ./bootstrap $target"
        code=$?
        [ "$code" -eq 0 ] || failed=1
        echo "==== ./bootstrap $target: exit code $code, $(($(date +%s) - start)) seconds"
        [ "$code" -eq 0 ] && echo "ok bare root: ./bootstrap $target" ||
            echo "not ok bare root: ./bootstrap $target"
    done
    echo "compilers $(inside 'gcc --version | head -n 1'); ninja $(inside 'ninja --version')"
    return $failed
}

[ "$(id -u)" = 0 ] || fail "chroot and mount need root"
command -v debootstrap > /dev/null || fail "missing Debian package: debootstrap"
mkdir -p "$work"
trap 'remove_root "$root"; remove_root "$work/new"' EXIT
trap 'exit 2' INT TERM HUP
[ -f "$cache" ] || make_cache
make_root
{
    run_targets "$@"
    echo "EXIT $?"
} < /dev/null 2>&1 | tee "$log.part"
mv "$log.part" "$log"
grep -q '^EXIT 0$' "$log"
