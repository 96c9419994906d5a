#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core XROCE_CASES=core
# tier: long long XROCE_CASES=long
#
# MPI without root: ranks of Open MPI and MPICH over UCX, which a user without privileges starts.
# On one interface they talk to each other through its broker, on two of one host (`near`) through
# the brokers of both; with two hosts, half of them are on another. Shared memory is left out of
# UCX_TLS, and with it what MPI has itself for ranks of one host (MPIR_CVAR_NOLOCAL, the BTLs), so
# all data goes over queue pairs. mpi/data.c checks each byte.
#
# `as_it_comes` has none of that: MPI on two hosts, after `xroce run --` and without any variable.
#
# XROCE_MPI_RANKS: how many ranks, instead of 2, 4 and 8, and 16 on one host.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/counted.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/ucx_small.sh"
. "$here/tests/netns/lib/agent.sh"
. "$here/tests/netns/lib/ranks.sh"

export MPIR_CVAR_NOLOCAL=1

IF_NEAR=wa IP4_NEAR=10.77.0.3
# Every second rank is on the other interface, if there is one. A file records the interfaces used.
rank_program "grep -q '^ *$IF_NEAR:' /proc/net/dev &&
	[ \$((\${OMPI_COMM_WORLD_LOCAL_RANK:-\$PMI_RANK} % 2)) = 1 ] && dev=$IF_NEAR
: >$OWN/home/used.\$dev"

# launch MPI HOSTS: the words that start RANKS ranks there
launch() {
	case $1-$2 in
	openmpi-one | openmpi-near)
		words=(mpirun.openmpi --oversubscribe --mca plm_rsh_agent false -n "$RANKS")
		;;
	openmpi-two)
		words=(mpirun.openmpi --oversubscribe --map-by node --mca plm_rsh_agent "$AGENT"
			--host $IP4_A:$RANKS,$IP4_B:$RANKS -n "$RANKS")
		;;
	mpich-one | mpich-near) words=(mpiexec.hydra -launcher fork -n "$RANKS") ;;
	mpich-two)
		words=(mpiexec.hydra -launcher ssh -launcher-exec "$AGENT" -localhost $IP4_A
			-hosts $IP4_A,$IP4_B -n "$RANKS")
		;;
	esac
}

# near_up: makes the second interface of A at its first use. The interface has a separate broker,
# and is of the same network, because UCX does not look for a way between two networks.
near_broker=
near_up() {
	[ -z "$near_broker" ] || return 0
	ip -n $NS_A link add $IF_NEAR mtu 4500 type veth peer name wb mtu 4500 &&
		ip -n $NS_A link set wb up && ip -n $NS_A link set $IF_NEAR up &&
		ip -n $NS_A addr add $IP4_NEAR/24 dev $IF_NEAR &&
		serve a $IF_NEAR && near_broker=$broker
}
near_down() {
	[ -n "$near_broker" ] || return 0
	stop "$near_broker"
	ip -n $NS_A link del $IF_NEAR
}

# data MPI HOSTS RANKS TRANSPORTS
data() {
	local mpi=$1 hosts=$2 RANKS=$3 tls=$4 words rc line count=1 part=2
	skip_reason="mpicc.$mpi is not installed (packages libopenmpi-dev, mpich)"
	command -v "mpicc.$mpi" >/dev/null || return 77
	[ -x "$OWN/bin/data.$mpi" ] ||
		"mpicc.$mpi" -O2 -w -o "$OWN/bin/data.$mpi" "$here/tests/netns/mpi/data.c" ||
		{ fail "mpicc.$mpi cannot compile data.c"; return; }
	[ "$hosts" != near ] || near_up || { fail "no interface $IF_NEAR"; return; }
	[ "$hosts" != two ] || agent_start
	rm -f "$OWN/home/used."*
	launch "$mpi" "$hosts"
	if [ "$tls" = any ]; then
		words=(env -u OMPI_MCA_pml -u OMPI_MCA_osc -u OMPI_MCA_btl -u MPIR_CVAR_NOLOCAL "${words[@]}")
		[ "$mpi" != openmpi ] || words+=(--mca pml ucx --mca osc ucx)
	fi
	start mpi a "${NOBODY[@]}" "${words[@]}" "$OWN/bin/rank" "$tls" "$OWN/bin/data.$mpi"
	finish "$child" 120
	rc=$?
	[ $rc -eq 0 ] || { fail "it ended with $rc"; show mpi; show answer; }
	[ "$hosts" != two ] || { agent_stop; count=2 part=4; }
	[ "$hosts" != near ] || need_equal "interfaces that ranks had" \
		"$(cd "$OWN/home" && echo used.*)" "used.$IF_A used.$IF_NEAR"
	need_line mpi "^data ok: $RANKS ranks on $count hosts, [0-9]+ bytes checked" || return
	# of every rank, in xroce's own counters: queue pairs, and received packets
	need_equal "ranks that used an interface of ours" \
		"$(grep -o 'xroce: xroce_[^ ]* of pid' "$WORK/mpi.out" | grep -c .)" "$RANKS"
	need_least "RC or UD QPs" $(($(counted mpi RC) + $(counted mpi UD))) "$RANKS"
	# What a client sends, its device receives: about all that was checked goes by there, of two
	# hosts half on each. So it was not shared memory.
	[ "$tls" != any ] || { need_counted mpi in 100; return; }
	line=$(grep -oE '[0-9]+ bytes checked, [0-9]+' "$WORK/mpi.out")
	need_least "what went by interfaces" "${line##* }" $((${line%% *} / part))
}

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
[ -n "${XROCE_MPI_RANKS:-}" ] || core_cases=(openmpi_one_rc_2 mpich_two_rc_2)
# Of MPICH one a host: its own shared memory between two fails, without us too (docs/frameworks.md).
declare -A comes=([openmpi]=4 [mpich]=2)
for hosts in one two near; do
	for mpi in openmpi mpich; do
		some="2 4 8 16"
		[ $hosts != two ] || some="2 4 8"
		for ranks in ${XROCE_MPI_RANKS:-$some}; do
			# UCX connects its RC queue pairs over UD
			tier_case ${mpi}_${hosts}_rc_$ranks \
				data $mpi $hosts $ranks rc_verbs,ud_verbs:aux,self
			[ "$ranks" != 4 ] || tier_case ${mpi}_${hosts}_ud_$ranks \
				data $mpi $hosts $ranks ud_verbs,self
		done
		[ $hosts != two ] || tier_case ${mpi}_as_it_comes \
			data $mpi $hosts "${comes[$mpi]}" any
	done
done
near_down
finish_cases
