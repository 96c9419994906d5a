# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Which way the frames of a case left. Sourced after case.sh.

# left_by WAY: the server's frames did, but for those by AF_XDP before the peer was there, or while
# the thread that asks whether it is had to wait for a processor.
left_by() {
	local way=$1 other n all xsk
	all=$(kept server xroce_eng_stat tx_packets)
	n=$(kept server xroce_eng_stat "tx_$way")
	xsk=$(kept server xroce_eng_stat tx_xsk)
	need_least "frames that left by $way, of $all," "$n" $((all / 4))
	[ "$way" = xsk ] || need_equal "and by AF_XDP" $((n + xsk)) "$all"
	for other in tap live gso; do
		[ $other = "$way" ] || need_equal "frames that left by $other" "$(kept server xroce_eng_stat tx_$other)" 0
	done
}

# Why next to none was redirected: the thread that asks whether the peer takes such frames had no
# answer in time, for want of a processor or because the kernel was at others' interfaces.
was_late() {
	local all=$(kept server xroce_eng_stat tx_packets)
	[ $(($(kept server xroce_eng_stat tx_tap) + $(kept server xroce_eng_stat tx_live))) -lt $((all / 4)) ]
}
# redirecting WAY COMMAND...: again where that was so and the way is one of redirection.
redirecting() {
	case $1 in
	tap | live | auto) again_if was_late "${@:2}" ;;
	*) "${@:2}" ;;
	esac
}
