# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Brokers with files for all processes (`xroce serve --files`), in the test's own mount namespace,
# which the caller has entered, and two hosts. Sourced after case.sh.

# A /dev of the test's own, which other tests do not see.
mkdir "$WORK/dev" && mount -t tmpfs -o mode=0755 none "$WORK/dev" && cp -a /dev/{null,zero,random,urandom,tty,full,fd,fuse} "$WORK/dev" &&
	mkdir "$WORK/dev"/{net,pts,shm} && cp -a /dev/net/tun "$WORK/dev/net" && mount --rbind /dev/pts "$WORK/dev/pts" &&
	mount --bind /dev/shm "$WORK/dev/shm" && mount --rbind "$WORK/dev" /dev || exit 1
# Other tests do not find the network namespaces of this mount namespace either.
mkdir -p /run/netns && mount -t tmpfs none /run/netns || exit 1
# One test makes the directory of these files another user's.
mkdir -p /run/xroce && mount -t tmpfs -o mode=0755 none /run/xroce || exit 1
trap 'umount -R -l /dev; umount -R -l "$WORK/dev"; netns_cleanup' EXIT
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
install -m 755 "$TOOLS/sysfs" "$OWN/bin/"

SYS=/sys/class/infiniband NODES=/dev/infiniband
HERE=/run/xroce/files/$(stat -L -c %i /proc/self/ns/mnt)
# A program without `xroce run`.
ALONE=("${NOBODY[@]}" env "LD_LIBRARY_PATH=$OWN/lib")

# with_files NS IFACE...
with_files() {
	serve_options=(--files "${more_options[@]}")
	serve "$@" || return
	wait_until 10 test -c "$NODES/xroce_${!#}" || { fail "no files"; show "broker_$2"; return 1; }
}
more_options=()
keepers() { processes xroce-files; }
# of this test's mount namespace
processes() {
	local p name ours
	ours=$(readlink /proc/self/ns/mnt)
	for p in /proc/[0-9]*; do
		{ read -r name <"$p/comm"; } 2>/dev/null && [ "$name" = "$1" ] && [ "$(readlink "$p/ns/mnt" 2>/dev/null)" = "$ours" ] &&
			! is_gone_or_zombie "${p#/proc/}" && echo "${p#/proc/}"
	done
	return 0
}
has_processes() { [ "$(processes "$1" | wc -l)" -eq "$2" ]; }
is_not_there() { [ ! -e "$1" ]; }
our_mounts() { grep -E ' - (overlay|fuse\.xroce|tmpfs) xroce(-files)? |/sys/class' /proc/self/mountinfo; }

# The state of the machine that nothing of ours is to be left in.
# bdi: of each file system that is mounted, by whomever
inventory() {
	ls -1 /sys/class /dev
	find /sys/class -mindepth 1 -maxdepth 2 ! -path '*/bdi/*' -printf '%p %y %l\n' | sort
	our_mounts
	[ ! -e "$HERE" ] || find "$HERE"
}
inventory >"$WORK/before"
same_as_before() { diff "$WORK/before" <(inventory) >"$WORK/diff.out"; }
nothing_is_left() {
	wait_until 5 same_as_before || { fail "$1: something is left"; show diff; }
	wait_until 5 has_processes xroce-files 0 || fail "$1: a keeper is left"
	wait_until 5 has_processes xroce-counters 0 || fail "$1: a process that serves counters is left"
}

# compare DEVICE [NS]: what the files say is what the verbs say, once an address that has just come
# is known to both.
compare() {
	wait_until 5 agrees "$@"
	need_line looked '^compared [0-9]+ values, 0 differ$'
}
agrees() {
	in_ns "${2:-a}" timeout 60 "${ALONE[@]}" XROCE_DEV="${1#xroce_}" "$OWN/bin/sysfs" "$1" >"$WORK/looked.out" 2>&1
	grep -q ', 0 differ$' "$WORK/looked.out"
}
