# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Checked traffic of vdata between A and B, in $server and $client, until $WORK/go is removed. The
# test starts the two programs. Sourced after case.sh.

received() { in_a "$XROCE" stat --pid "$server" 2>/dev/null | awk '$4 == "rx_packets" { n = $5 } END { print n + 0 }'; }
has_received() { [ "$(received)" -ge "$1" ]; }
has_received_or_ends() { has_received "$1" || is_gone_or_zombie "$server" || is_gone_or_zombie "$client"; }

# goes_on: 300 more packets arrive at A.
goes_on() {
	local n
	n=$(received)
	wait_until 20 has_received_or_ends $((n + 300))
	has_received $((n + 300)) || { fail "nothing more comes after $n"; show server; show client; return 1; }
}

# vdata_ends: both programs end, and all data was right.
vdata_ends() {
	rm -f "$WORK/go"
	finish "$client" 30 || { fail "the client ends with $?"; show client; }
	finish "$server" 30 || { fail "the server ends with $?"; show server; }
	need_line server '^vdata: rc .* bytes right'
	need_line client '^vdata: rc .* bytes right'
}
