#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# UCX between two unprivileged processes of one interface: UCX's own measurements, each test over
# both of its verbs transports. On the lower level (UCT) a transport uses its own operations, on the
# upper one (UCP) UCX builds the rest from messages.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/ucx_small.sh"

# ucx TRANSPORTS TEST MESSAGES BYTES [OPTION...]
ucx() {
	local tls=$1 test=$2 n=$3 size=$4
	shift 4
	between_two 13337 "${NOBODY[@]}" "$OWN/bin/xroce" run --dev $IF_A --share always -- \
		env "${ucx_small[@]}" UCX_TLS="$tls" UCX_NET_DEVICES=$DEV_A:1 UCX_IB_GID_INDEX="$gid_a" UCX_WARN_UNUSED_ENV_VARS=n \
		ucx_perftest -t "$test" -n "$n" -w 10 -s "$size" "$@" || return
	need_line client "^Final: +$n "
}

if ! command -v ucx_perftest >/dev/null; then
	echo "skip ucx_shared ucx_perftest is not installed (package ucx-utils)"
	exit 0
fi
serve a $IF_A && gids_for v4 || { cat "$WORK/case.notes"; exit 1; }

# of the core, in which UCX is more often between two hosts (ucx.sh, ucx_hosts.sh)
core_cases=(
	rc_tag_lat_8 ud_ucp_put_bw_65536 rc_ucp_get_65536 ud_ucp_fadd
	uct_rc_verbs_put_bw_65536_zcopy
)

# UCX connects its RC queue pairs over UD
while read -r name tls; do
	for test in tag_lat tag_bw tag_sync_lat stream_lat stream_bw ucp_am_lat ucp_am_bw ucp_put_lat ucp_put_bw ucp_get; do
		# one message at a time, of which the 60th is as the tenth
		n=300
		[[ $test == *_bw ]] || n=60
		tier_case ${name}_${test}_8 ucx "$tls" $test $n 8
		tier_case ${name}_${test}_65536 ucx "$tls" $test 50 65536
	done
	for test in ucp_add ucp_fadd ucp_swap ucp_cswap; do
		tier_case ${name}_${test} ucx "$tls" $test 60 8
	done
done <<'END'
rc rc_verbs,ud_verbs:aux
ud ud_verbs
END

# TRANSPORT TEST BYTES [OPTION...]: UCT
while read -r tl test size options; do
	n=300
	[[ $test != *_lat ]] || n=60
	# shellcheck disable=SC2086 # several words
	tier_case uct_${tl}_${test}_${size}${options:+_${options#-D }} \
		ucx all $test $n "$size" -x $tl -d $DEV_A:1 $options
done <<'END'
rc_verbs am_lat 8
rc_verbs am_lat 4096 -D zcopy
rc_verbs am_bw 4096 -D bcopy
rc_verbs put_lat 8
rc_verbs put_bw 65536 -D zcopy
rc_verbs get 65536 -D zcopy
rc_verbs add_lat 8
rc_verbs add_mr 8
rc_verbs fadd 8
rc_verbs cswap 8
ud_verbs am_lat 8
ud_verbs am_lat 2048 -D zcopy
ud_verbs am_bw 2048 -D bcopy
END
finish_cases
