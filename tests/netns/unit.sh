#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
# needs: systemd
#
# The unmodified systemd unit, by a systemd that is the first process of a container
# (systemd-nspawn) on a root file system with this machine's /usr. With its capabilities, system
# calls and devices the broker serves, reports that, and comes back when it is killed.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

if ! command -v systemd-nspawn >/dev/null || [ ! -x /lib/systemd/systemd ]; then
	echo "skip unit systemd-nspawn is not installed (package systemd-container)"
	exit 0
fi

# unit PREFIX FILE: as make install writes it. No udev is in the container, and so no unit of the
# interface: the lines that wait for it are left out there.
unit() { sed "s#@PREFIX@#$1#" "$here/share/xroce@.service.in" >"$2"; }
drop_in() { mkdir -p "$2" && sed "s#@PREFIX@#$1#" "$here/share/xroce-files.conf.in" >"$2/files.conf"; }

verified() {
	mkdir -p "$WORK/man/man8" && cp "$here/man/xroce.8" "$WORK/man/man8/" || return
	unit "$OWN" "$WORK/xroce@$IF_A.service"
	MANPATH=$WORK/man systemd-analyze verify "$WORK/xroce@$IF_A.service" >"$WORK/verify.out" 2>&1 ||
		{ fail "systemd-analyze verify ends with $?"; show verify; }
	need_equal "what it says" "$(cat "$WORK/verify.out")" ""
	drop_in "$OWN" "$WORK/xroce@.service.d"
	MANPATH=$WORK/man systemd-analyze verify "$WORK/xroce@$IF_A.service" >"$WORK/verify.out" 2>&1 ||
		{ fail "systemd-analyze verify ends with $? with the drop-in"; show verify; }
	need_equal "what it says of the drop-in" "$(cat "$WORK/verify.out")" ""
	rm -r "$WORK/xroce@.service.d"
	# "OK" ends at 4.9; most of its remaining exposure is CAP_NET_ADMIN and the host's network
	systemd-analyze security --offline=true --threshold=35 "$WORK/xroce@$IF_A.service" >"$WORK/security.out" 2>&1 ||
		{ fail "it is more exposed than 3.5"; show security; }
}

ROOT=$WORK/root
boot() {
	local dir
	mkdir -p "$ROOT"/{usr,etc/systemd/system/multi-user.target.wants,var,proc,sys,dev,run,tmp,own,root}
	for dir in bin sbin lib lib64; do
		ln -s usr/$dir "$ROOT/$dir"
	done
	cp /etc/os-release "$ROOT/etc/" && : >"$ROOT/etc/machine-id" || return
	echo root:x:0:0:root:/root:/bin/sh >"$ROOT/etc/passwd"
	unit /own "$WORK/unit"
	grep -v '=sys-subsystem-net-devices-' "$WORK/unit" >"$ROOT/etc/systemd/system/xroce@.service"
	ln -s ../xroce@.service "$ROOT/etc/systemd/system/multi-user.target.wants/xroce@$IF_A.service"
	ln -s /lib/systemd/system/multi-user.target "$ROOT/etc/systemd/system/default.target"
	systemd-nspawn -q -D "$ROOT" --boot --register=no --keep-unit --kill-signal=SIGRTMIN+3 \
		--network-namespace-path=/run/netns/$NS_A --capability=all \
		--system-call-filter='bpf perf_event_open' --bind-ro=/usr --bind=/dev/net/tun --bind=/dev/fuse \
		--bind-ro="$OWN:/own" </dev/null >"$WORK/nspawn.out" 2>&1 &
	nspawn=$!
	netns_children+=("$nspawn")
	wait_until 60 booted || { fail "systemd does not start"; show nspawn; }
	# on a machine systemd mounts it, and not in a container
	inside mount -t bpf -o mode=0700 bpf /sys/fs/bpf && ctl restart xroce@$IF_A
}
booted() {
	is_gone_or_zombie "$nspawn" && return 1
	init=$(pgrep -P "$nspawn" -x systemd)
	[ -n "$init" ] && ctl is-active multi-user.target
}
inside() { nsenter -t "$init" --mount --net --pid "$@"; }
ctl() { nsenter -t "$init" --mount --pid --net --ipc --uts --cgroup systemctl "$@"; }

unit_pid() { ctl show -p MainPID --value xroce@$IF_A; }
active() { [ "$(ctl is-active xroce@$IF_A)" = active ]; }
inside_answers() { inside /own/bin/xroce list $IF_A | grep -q '^  broker *pid'; }

serves() {
	local pid=
	wait_until 30 active || { fail "the unit is not active"; ctl status xroce@$IF_A >"$WORK/status.out" 2>&1; show status; return; }
	# Type=notify: it is active when it has said that it listens
	inside_answers || fail "active, and no broker"
	for pid in $(pgrep -P "$init" -x xroce); do
		# chown, net_admin, perfmon, bpf
		need_equal "its capabilities" "$(sed -n 's/^CapEff:\t*//p' "/proc/$pid/status")" 000000c000001001
		need_equal "its system call filter" "$(sed -n 's/^Seccomp:\t*//p' "/proc/$pid/status")" 2
	done
	[ -n "$pid" ] || fail "no process of it"
}

# Two users' programs, which see the broker's socket in the container's /run.
pingpong() {
	local rc server tool=("${NOBODY[@]}" /own/bin/xroce run --dev $IF_A --share always --
		ibv_rc_pingpong -c -d $DEV_A -g "$gid_a" -n 300)
	start server a nsenter -t "$init" --mount --pid "${tool[@]}"
	server=$child
	wait_until 20 listens_or_gone a 18515 "$server"
	start client a nsenter -t "$init" --mount --pid "${tool[@]}" $IP4_A
	finish "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "the client ended with $rc"; show client; stop "$server"; show server; return 1; }
	finish "$server" 10 || { fail "the server ended with $?"; show server; }
	need_line client '^2457600 bytes in '
}

# A user inspects its own process: every command that root has for that.
looked() {
	local server name rc
	start server a nsenter -t "$init" --mount --pid "${NOBODY[@]}" /own/bin/xroce run --dev $IF_A \
		--share always -- ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 1
	server=$child
	wait_until 20 listens_or_gone a 18515 "$server"
	for name in "qp" "cq" "mr" "stat" "explain" "trace -D 1" "capture -D 1 -w /dev/null"; do
		# shellcheck disable=SC2086
		inside timeout 30 "${NOBODY[@]}" /own/bin/xroce $name >"$WORK/looked.out" 2>&1
		rc=$?
		need_equal "status of $name" "$rc" 0
		need_no_line looked '[Pp]ermission denied|not permitted'
		case $name in qp | cq | mr | stat) need_line looked ibv_rc_pingpong ;; esac
	done
	start client a nsenter -t "$init" --mount --pid "${NOBODY[@]}" /own/bin/xroce run --dev $IF_A \
		--share always -- ibv_rc_pingpong -d $DEV_A -g "$gid_a" -n 1 $IP4_A
	finish "$child" 30 || fail "the client ended with $?"
	finish "$server" 10 || fail "the server ended with $?"
}

restarted() {
	local before
	before=$(unit_pid)
	ctl kill -s KILL --kill-who=main xroce@$IF_A
	wait_until 30 other_pid "$before" || fail "it does not come back"
	wait_until 30 inside_answers || fail "it does not serve again"
	pingpong
}
other_pid() { active && [ "$(unit_pid)" != "$1" ]; }

stopped() {
	ctl stop xroce@$IF_A || fail "systemctl stop ends with $?"
	need_equal "TAP devices" "$(ip -n $NS_A -o link show type tun)" ""
	xdp_off $NS_A $IF_A || fail "an XDP program is left"
	need_equal "the directory is kept for other instances" \
		"$(inside stat -c '%a %F' /run/xroce)" "755 directory"
	ctl start xroce@$IF_A || fail "systemctl start ends with $?"
	inside_answers || fail "started, and no broker"
}

# With the drop-in: all of the machine see the files, also after the broker was killed.
files() {
	local before
	drop_in /own "$ROOT/etc/systemd/system/xroce@.service.d" && ctl daemon-reload && ctl restart xroce@$IF_A ||
		{ fail "it does not start"; ctl status xroce@$IF_A >"$WORK/status.out" 2>&1; show status; return; }
	has_files || { fail "no files"; ctl status xroce@$IF_A >"$WORK/status.out" 2>&1; show status; return; }
	need_equal "sent" "$(inside cat /sys/class/infiniband/$DEV_A/ports/1/counters/port_xmit_packets)" 0
	pingpong
	before=$(unit_pid)
	ctl kill -s KILL --kill-who=main xroce@$IF_A
	wait_until 30 other_pid "$before" || fail "it does not come back"
	wait_until 10 has_files || fail "they do not come back"
	ctl stop xroce@$IF_A || fail "systemctl stop ends with $?"
	need_equal "how it ended" "$(ctl show -p Result --value xroce@$IF_A)" success
	need_equal "what is left" "$(inside sh -c "ls -d /sys/class/infiniband /dev/infiniband /run/xroce/files; grep ' xroce ' /proc/self/mountinfo" 2>/dev/null)" ''
}
has_files() { inside test -e /sys/class/infiniband/$DEV_A/node_type && inside test -c /dev/infiniband/$DEV_A; }

run_case verified verified
[ "${XROCE_CASES:-}" != core ] || finish_cases
gids_for v4 || { cat "$WORK/case.notes"; exit 1; }
boot || { echo "skip unit systemd does not run in a container here: $(tail -1 "$WORK/nspawn.out")"; exit 0; }
run_long_case serves serves
run_long_case programs pingpong
run_long_case looked looked
run_long_case restarted restarted
run_long_case stopped stopped
run_long_case files files
kill -s RTMIN+3 "$init"
finish "$nspawn" 30
finish_cases
