# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A chroot of Debian in $root, a file system in memory. Sourced instead of case.sh, which it
# sources: a script of root's starts again in a private mount namespace, with which its mounts end.
# Nothing of this machine can be written or removed through the chroot: it has private device nodes
# and a private BPF file system, and /sys is read-only.
skip_all() { echo "skip $(basename "$0" .sh) $*"; exit 0; }
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
[ -n "${XROCE_CHROOT:-}" ] || XROCE_CHROOT=1 exec unshare --mount --propagation private "$0" "$@"
unset XROCE_CHROOT
. "$(dirname "${BASH_SOURCE[0]}")/case.sh"
case $BUILD in /*) ;; *) BUILD=$here/$BUILD ;; esac

root=$work/root
chroot_end() {
	umount -lR "$root" 2>/dev/null
	rm -rf --one-file-system "$work"
}
trap chroot_end EXIT
mkdir "$root" && mount -t tmpfs -o mode=755 xroce-chroot "$root" || exit 1

# Of mmdebstrap: the programs of a release, without recommended packages.
chroot_options=(--mode=root --variant=apt --skip=cleanup/apt/lists)
# The same, and no pages or translations of any package.
chroot_options_bare=("${chroot_options[@]}"
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*'
	--dpkgopt='path-exclude=/usr/share/locale/*')

# chroot_make RELEASE SOURCE TAR SUM LOG OPTION...: unpacks the release's system, kept as TAR, in
# whose name `HASH` stands for the hash of the text SUM, as of all that the system is made of. Makes
# it if it is not there, of packages from SOURCE, in which `MIRROR` stands for the mirror. Then
# mounts /dev, /proc and /sys. Ends the script if it cannot.
chroot_make() {
	local release=$1 source=$2 any=${3/HASH/*} log=$5 tar

	tar=$(sha256sum <<<"$4")
	tar=${3/HASH/${tar:0:16}}
	if [ -s "$tar" ]; then
		tar -C "$root" -xf "$tar" || exit 1
	elif ! chroot_bootstrap "${@:6}"; then
		tail -n 30 "$log"
		echo "not ok ${program}__bootstrap"
		exit 1
	fi
	chroot_mounts || exit 1
}

# Makes the tar in a file system of memory: dpkg calls fsync() after each file.
chroot_bootstrap() {
	local mirror compress=()

	[[ $tar != *.gz ]] || compress=(-I 'gzip -1')
	command -v mmdebstrap >/dev/null || skip_all "no mmdebstrap"
	mirror=$(scripts/mirror.sh)
	mirror=${mirror%/}
	/usr/lib/apt/apt-helper download-file "$mirror/dists/$release/InRelease" "$work/release" \
		>/dev/null 2>&1 || skip_all "no mirror has $release"
	mkdir -p "${tar%/*}" && mmdebstrap "$@" "$release" "$root" "${source/MIRROR/$mirror}" \
		>"$log" 2>&1 || return
	find "${tar%/*}" -maxdepth 1 -type f -name "${any##*/}" -delete
	tar -C "$root" --one-file-system --exclude=./dev "${compress[@]}" -cf "$tar.new" . &&
		mv "$tar.new" "$tar"
}

# chroot_mounts: /dev, /proc and /sys, once the system is unpacked.
chroot_mounts() {
	local name number

	rm -rf --one-file-system "$root/dev"
	mkdir -p "$root"/{proc,sys,run/netns,dev/{net,pts,shm}} &&
		mount -t proc proc "$root/proc" &&
		mount -t sysfs -o ro sysfs "$root/sys" && mount -t bpf bpf "$root/sys/fs/bpf" &&
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts" &&
		mount -t tmpfs -o mode=1777 shm "$root/dev/shm" &&
		ln -s pts/ptmx "$root/dev/ptmx" && ln -s /proc/self/fd "$root/dev/fd" || return
	while read -r name number; do
		# shellcheck disable=SC2086 # two words
		mknod -m 666 "$root/dev/$name" c $number || return
	done <<-'END'
		null 1 3
		zero 1 5
		full 1 7
		random 1 8
		urandom 1 9
		tty 5 0
		net/tun 10 200
		fuse 10 229
	END
}

# chroot_sources: the project's sources, in /xroce of the chroot.
chroot_sources() {
	mkdir "$root/xroce" || return
	{ git ls-files -z 2>/dev/null || find . -path ./build\* -prune -o -type f -print0; } |
		xargs -0 cp -P --parents -t "$root/xroce"
}
