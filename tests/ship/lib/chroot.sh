# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A chroot of Debian in $root, a file system in memory. Sourced after case.sh by a script in a
# private mount namespace. Nothing of this machine can be written or removed through it: it has
# private device nodes and a private BPF file system, and /sys is read-only.
root=$work/root
chroot_end() {
	umount -lR "$root" 2>/dev/null
	rm -rf --one-file-system "$work"
}
trap chroot_end EXIT
mkdir "$root" && mount -t tmpfs -o mode=755 xroce-chroot "$root" || exit 1

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
