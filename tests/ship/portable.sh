#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The portable directory (scripts/portable.sh): it needs nothing but a glibc of 2.28 or later, and
# works in a chroot of Debian 11 (glibc 2.31) that has neither our other libraries nor a newer C
# library, read-only, as root by XDP and as an ordinary user by UDP sockets. As root, with
# mmdebstrap and a mirror. The chroot stays as BUILD/debian11/*.tar. portable.sh [BUILD]
. "$(dirname "$0")/lib/chroot.sh"

packages=(ibverbs-utils perftest rdmacm-utils iproute2 util-linux)
chroot_make bullseye 'deb MIRROR bullseye main' "$BUILD/debian11/HASH.tar" \
	"$(printf '%s\n' "${packages[@]}" "${chroot_options_bare[@]}")" "$work/bootstrap" \
	"${chroot_options_bare[@]}" --include="$(IFS=,; echo "${packages[*]}")"
chmod 755 "$work" || exit 1
here_is=$BUILD/portable

portable__builds() { scripts/portable.sh "$BUILD" >"$work/out" 2>&1 || show out; }

objects() { echo "$here_is"/bin/xroce "$here_is"/lib/xroce/*.so*; }

portable__needs_glibc_alone() {
	local file

	for file in $(objects); do
		objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }'
	done | sort -u >"$work/needed"
	# its own libraries, and the ones of glibc 2.28
	! grep -vxE 'lib(c|m)\.so\.6|lib(pthread|dl|rt)\.so\.[0-9]|ld-linux-.*|lib(ibverbs|rdmacm)\.so\.1|lib(mnl\.so\.0|isal\.so\.2)' \
		"$work/needed"
}

portable__needs_no_later_glibc() {
	local file

	for file in $(objects); do
		objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+'
	done | sort -uV >"$work/versions"
	[ "$({ cat "$work/versions"; echo GLIBC_2.28; } | sort -V | tail -n 1)" = GLIBC_2.28 ] &&
		[ "$(wc -l <"$work/versions")" -gt 5 ] || show versions
}

# Its C library's functions that we replace are not exported to programs.
portable__exports_what_the_other_build_does() {
	local lib

	for lib in libibverbs.so.1 librdmacm.so.1 librspreload.so; do
		diff <(objdump -T "$BUILD/lib/$lib" | grep -v UND | awk '{ print $NF }' | sort) \
			<(objdump -T "$here_is/lib/xroce/$lib" | grep -v UND | awk '{ print $NF }' | sort) ||
			return
	done
}

mounted=
# in_old COMMAND...: in the chroot, where the directory is /opt/any, read-only.
in_old() {
	if [ -z "$mounted" ]; then
		mkdir -p "$root/opt/any" && mount --bind "$here_is" "$root/opt/any" &&
			mount -o remount,bind,ro "$root/opt/any" || return
		mounted=yes
	fi
	env -i PATH=/opt/any/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ "XROCE_CHECK=${XROCE_CHECK:-}" \
		chroot "$root" "$@"
}

portable__is_in_an_old_system() {
	in_old ldd --version | head -n 1 >"$work/out" && grep -q ' 2\.31$' "$work/out" &&
		! ls "$root"/usr/lib/*/lib{isal,xdp,fuse3,microhttpd}.so.* 2>/dev/null || show out
}

portable__commands() {
	in_old xroce --version && in_old xroce list >"$work/out" 2>&1 &&
		XROCE_DEV=lo in_old xroce run --dev lo -- ibv_devinfo >"$work/out" 2>&1 &&
		grep -q xroce_lo "$work/out" || show out
}

# both SERVER CLIENT: in one network namespace of the chroot, in words of its shell.
both='ip link set lo up
server() { xroce run --dev lo -- $1 >/tmp/server 2>&1; echo server $?; }
server "$1" & n=0
until ss -Hltn | grep -q :18515 || ss -Hlun | grep -q :18515 || [ $((n += 1)) -gt 100 ]; do sleep 0.1; done
xroce run --dev lo -- $2; echo client $?
wait; cat /tmp/server'
well() {
	"$@" >"$work/out" 2>&1
	grep -qx 'server 0' "$work/out" && grep -qx 'client 0' "$work/out" || show out
}
as_root() { in_old unshare -n sh -c "$both" sh "$@"; }
# a process in a chroot gets no user namespace, so it comes first
as_user() {
	in_old true && env -i PATH=/opt/any/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ \
		"XROCE_CHECK=${XROCE_CHECK:-}" setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare -Urn chroot "$root" sh -c "$both" sh "$@"
}

portable__pingpong_as_root() {
	well as_root "ibv_rc_pingpong -d xroce_lo -g 0 -c" "ibv_rc_pingpong -d xroce_lo -g 0 -c 127.0.0.1"
}
portable__pingpong_as_user() {
	rm -f "$root/tmp/server"
	well as_user "ibv_rc_pingpong -d xroce_lo -g 0 -c" \
		"ibv_rc_pingpong -d xroce_lo -g 0 -c 127.0.0.1" && grep -q 'UDP sockets' "$work/out"
}
portable__perftest_as_user() {
	rm -f "$root/tmp/server"
	well as_user "ib_write_bw -d xroce_lo -n 500" "ib_write_bw -d xroce_lo -n 500 127.0.0.1"
}
portable__rdma_cm_as_user() {
	rm -f "$root/tmp/server"
	well as_user "rping -s -a 127.0.0.1 -p 18515 -C 10" "rping -c -a 127.0.0.1 -p 18515 -C 10 -V"
}

run_cases
