# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs of a user without any privilege on interfaces that brokers share: a copy of the build
# that this user may read, its words before a command, and brokers. Sourced behind case.sh, after
# the topology is made.

OWN=$WORK/own
NOBODY=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
chmod 755 "$WORK"
mkdir -p "$OWN/bin" "$OWN/lib" "$OWN/home"
install -m 755 "$XROCE" "$OWN/bin/xroce"
install -m 755 "$BUILD/lib/libibverbs.so.1" "$OWN/lib/libibverbs.so.1"
chown 65534:65534 "$OWN/home"

broker_answers() { in_ns "$1" "$XROCE" list "$2" | grep -q 'broker *pid'; }

# serve NS IFACE...: a broker, once each interface of it answers. It ends with the test.
serve() {
	local ns=$1 i
	shift
	start "broker_$1" "$ns" "$XROCE" serve "$@"
	for i in "$@"; do
		wait_until 10 broker_answers "$ns" "$i" || { fail "no broker on $i"; show "broker_$1"; return 1; }
	done
}

# Some programs want a character device of the device's name under /dev/infiniband, of which they
# read nothing (see ucx.sh). with_nodes DEVICE... -- COMMAND...: such nodes, in a mount namespace
# of their own, then the command as that user. Run it by `unshare -m`, as root.
cat >"$OWN/bin/with_nodes" <<'END'
#!/bin/bash
mount -t tmpfs none /dev/infiniband || exit 1
while [ "$1" != -- ]; do
	mknod -m 666 "/dev/infiniband/$1" c 1 3 || exit 1
	shift
done
shift
exec "$@"
END
chmod 755 "$OWN/bin/with_nodes"
# A directory to mount upon: taken away by whoever made it.
made_infiniband=
[ -d /dev/infiniband ] || { mkdir /dev/infiniband && made_infiniband=yes; }
unprivileged_end() { [ -z "$made_infiniband" ] || rmdir /dev/infiniband 2>/dev/null; }

# The words before a command of that user, with nodes of both interfaces.
AS_USER=(unshare -m --propagation private "$OWN/bin/with_nodes" $DEV_A $DEV_B -- "${NOBODY[@]}")

# between_two PORT COMMAND...: a server on A, which listens on that TCP port, and a client that is
# the same with A's address behind it; both must exit with 0 in time. Output is that of `client`.
between_two() {
	local port=$1 server rc
	shift
	start server a "$@"
	server=$child
	wait_until 10 listens_or_gone a "$port" "$server"
	start client a "$@" $IP4_A
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$server"; show server; return 1; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	return 0
}
