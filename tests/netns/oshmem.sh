#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# OpenSHMEM without root: PEs of Open MPI's oshrun over UCX, started by an unprivileged user. On one
# interface they talk to each other through its broker; with two hosts, half of them are on the
# other. Shared memory is left out of UCX_TLS and of MPI's own transports, so all data goes over
# queue pairs. oshmem/data.c checks each byte. With UD there is no `self` in UCX_TLS: a fetching
# operation on the same PE then returns 0, as between PEs that share memory, without xroce too.
#
# `as_it_comes` has none of that: a PE on each of two hosts, after `xroce run --`.
. "$(dirname "$0")/lib/case.sh"
for program in oshcc oshrun; do
	command -v $program >/dev/null ||
		skip_all "$program is not installed (packages openmpi-bin, libopenmpi-dev)"
done
netns_pair 4500
. "$here/tests/netns/lib/counted.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/ucx_small.sh"
. "$here/tests/netns/lib/agent.sh"
. "$here/tests/netns/lib/ranks.sh"

export SHMEM_SYMMETRIC_SIZE=32M
rank_program

# data HOSTS PES TRANSPORTS
data() {
	local hosts=$1 pes=$2 tls=$3 rc line part=2
	local words=(oshrun --oversubscribe --mca plm_rsh_agent "$AGENT" -n "$pes")
	[ -x "$OWN/bin/data" ] ||
		oshcc -O2 -w -o "$OWN/bin/data" "$here/tests/netns/oshmem/data.c" ||
		{ fail "oshcc cannot compile data.c"; return; }
	[ "$tls" != any ] || words=(env -u OMPI_MCA_btl "${words[@]}")
	if [ "$hosts" = 2 ]; then
		agent_start
		part=4
		words+=(--map-by node --host "$IP4_A:$pes,$IP4_B:$pes")
	fi
	start oshmem a "${NOBODY[@]}" "${words[@]}" "$OWN/bin/rank" "$tls" "$OWN/bin/data"
	finish_at_most "$child" 60
	rc=$?
	[ $rc -eq 0 ] || { fail "it ended with $rc"; show oshmem; show answer; }
	[ "$hosts" = 1 ] || agent_stop
	need_line oshmem "^data ok: $pes PEs on $hosts hosts, [0-9]+ bytes checked" || return
	need_equal "PEs that used an interface of ours" \
		"$(grep -o 'xroce: xroce_[^ ]* of pid' "$WORK/oshmem.out" | grep -c .)" "$pes"
	need_least "RC or UD QPs" $(($(counted oshmem RC) + $(counted oshmem UD))) "$pes"
	[[ $tls != rc* ]] || { need_counted oshmem WRITE 1000 && need_counted oshmem READ 10; }
	# What a client sends, its device receives: of two hosts about half on each.
	line=$(grep -oE '[0-9]+ bytes checked, [0-9]+' "$WORK/oshmem.out")
	need_least "what went by interfaces" "${line##* }" $((${line%% *} / part))
}

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
for hosts in 1 2; do
	for pes in 2 4; do
		# UCX connects its RC queue pairs over UD
		run_case hosts_${hosts}_rc_$pes data $hosts $pes rc_verbs,ud_verbs:aux,self
	done
	run_case hosts_${hosts}_ud_2 data $hosts 2 ud_verbs
done
run_case as_it_comes data 2 2 any
finish_cases
