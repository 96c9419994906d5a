#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The maintainer scripts of the Debian package, with a systemctl that records its calls: an upgrade
# restarts the units that are active, a removal stops all. maintainer.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

[ -x /usr/bin/deb-systemd-invoke ] || { echo "skip maintainer no deb-systemd-invoke"; exit 0; }
unshare --mount true 2>/dev/null || { echo "skip maintainer no mount namespace"; exit 0; }
mkdir "$work/bin"
cat >"$work/bin/systemctl" <<END
#!/bin/sh
echo "\$*" >>"$work/calls"
case "\$*" in
*list-units*) cat "$work/units" ;;
*is-enabled*) echo disabled ;;
esac
END
chmod 755 "$work/bin/systemctl"

# script SYSTEMD NAME ARGUMENT...: runs debian/xroce.NAME where systemd runs (`with`) or does not.
script() {
	local with=$1 name=$2
	shift 2
	: >"$work/calls"
	# DPKG_ROOT: no policy-rc.d of this machine
	unshare --mount sh -c 'mount -t tmpfs none /run && { [ "$1" != with ] || mkdir -p /run/systemd/system; } &&
		shift && exec "$@"' sh "$with" env PATH="$work/bin:$PATH" DPKG_ROOT="$work" \
		sh "debian/xroce.$name" "$@" || note "$name $* ends with $?"
}
# calls_are LINE...: the calls of systemctl, but for questions.
calls_are() {
	printf '%s\n' "$@" >"$work/want"
	grep -vE 'list-units|is-enabled|is-active' "$work/calls" | diff "$work/want" - >"$work/diff" || show diff
}
cat >"$work/units" <<'END'
xroce-export.service loaded active running xroce's counters for Prometheus
xroce@enp1s0\x2d1.service loaded active running RDMA verbs on enp1s0-1 for any number of processes
END

maintainer__installation_starts_nothing() {
	script with postinst configure
	calls_are '--system daemon-reload'
}

maintainer__upgrade_restarts_active_units() {
	script with postinst configure 0.0.9
	calls_are '--system daemon-reload' \
		'--quiet --system restart xroce-export.service xroce@enp1s0\x2d1.service'
}

maintainer__upgrade_starts_nothing() {
	: >"$work/units"
	script with postinst configure 0.0.9
	calls_are '--system daemon-reload'
}

maintainer__removal_stops_all_units() {
	script with prerm remove
	calls_are 'stop xroce@*.service xroce-export.service'
	script with postrm remove
	calls_are '--system daemon-reload'
}

maintainer__upgrade_stops_nothing() {
	script with prerm upgrade 0.2.0
	[ ! -s "$work/calls" ] || show calls
}

maintainer__without_systemd() {
	local call

	for call in 'postinst configure 0.0.9' 'prerm remove' 'postrm remove'; do
		# shellcheck disable=SC2086 # a script and its arguments
		script without $call
		[ ! -s "$work/calls" ] || show calls || return
	done
}

run_cases
