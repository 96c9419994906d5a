#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# MPI without root: ranks of Open MPI and MPICH over UCX, which a user without privileges starts.
# On one interface they talk to each other through its broker; on two, half of them are on another
# host. Shared memory is left out of UCX_TLS, and with it what MPI has itself for ranks of one host
# (MPIR_CVAR_NOLOCAL, the BTLs), so all data goes over queue pairs. mpi/data.c checks each byte.
#
# XROCE_MPI_RANKS: how many ranks, 4 by default.
. "$(dirname "$0")/lib/case.sh"
netns_pair 4500
. "$here/tests/netns/lib/unprivileged.sh"

RANKS=${XROCE_MPI_RANKS:-4}
export HOME=$OWN/home TMPDIR=$OWN/home
# One core for many ranks: whoever waits lets others run.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib,vader,tcp
export MPIR_CVAR_NOLOCAL=1

# A rank: on the interface that its host has, and on xroce's library; the launchers are not.
cat >"$OWN/bin/rank" <<END
#!/bin/bash
dev=$IF_A
grep -q '^ *$IF_B:' /proc/net/dev && dev=$IF_B
export UCX_TLS=\$1 UCX_NET_DEVICES=xroce_\$dev:1 UCX_IB_GID_INDEX=0 UCX_WARN_UNUSED_ENV_VARS=n
shift
exec "$OWN/bin/xroce" run --dev \$dev --share always -- "\$@"
END

# In place of a remote shell. `agent HOST COMMAND...` has a shell of the same user in namespace B
# run the command, and ends as it does.
cat >"$OWN/bin/agent" <<END
#!/bin/bash
ended=$OWN/home/ended.\$\$
[ "\$1" = -x ] && shift
shift
mkfifo "\$ended" || exit 1
echo "{ \$*; } </dev/null; echo \\\$? >\$ended" >"$OWN/home/calls"
read -r rc <"\$ended"
rm "\$ended"
exit "\$rc"
END
cat >"$OWN/bin/answer" <<END
#!/bin/bash
exec 3<>"$OWN/home/calls"
while IFS= read -r line <&3; do
	bash -c "\$line" 3>&- &
done
END
chmod 755 "$OWN/bin/rank" "$OWN/bin/agent" "$OWN/bin/answer"

# launch MPI HOSTS: the words that start RANKS ranks there
launch() {
	case $1-$2 in
	openmpi-one) words=(mpirun.openmpi --oversubscribe --mca plm_rsh_agent false -n "$RANKS") ;;
	openmpi-two)
		words=(mpirun.openmpi --oversubscribe --map-by node --mca plm_rsh_agent "$OWN/bin/agent"
			--host $IP4_A:$RANKS,$IP4_B:$RANKS -n "$RANKS")
		;;
	mpich-one) words=(mpiexec.hydra -launcher fork -n "$RANKS") ;;
	mpich-two)
		words=(mpiexec.hydra -launcher ssh -launcher-exec "$OWN/bin/agent" -localhost $IP4_A
			-hosts $IP4_A,$IP4_B -n "$RANKS")
		;;
	esac
}

# data MPI HOSTS TRANSPORTS
data() {
	local mpi=$1 hosts=$2 tls=$3 words answer rc line count=1 part=2
	skip_reason="mpicc.$mpi is not installed (packages libopenmpi-dev, mpich)"
	[ -x "$OWN/bin/data.$mpi" ] || return 77
	if [ "$hosts" = two ]; then
		rm -f "$OWN/home/calls"
		mkfifo -m 666 "$OWN/home/calls"
		# a host has a name of its own
		start answer b unshare -u sh -c 'hostname "$0" && exec "$@"' "host-$IF_B" "${AS_USER[@]}" "$OWN/bin/answer"
		answer=$child
	fi
	launch "$mpi" "$hosts"
	start mpi a "${AS_USER[@]}" "${words[@]}" "$OWN/bin/rank" "$tls" "$OWN/bin/data.$mpi"
	finish "$child" 120
	rc=$?
	[ $rc -eq 0 ] || { fail "it ended with $rc"; show mpi; show answer; }
	[ "$hosts" = one ] || { stop "$answer"; count=2 part=4; }
	need_line mpi "^data ok: $RANKS ranks on $count hosts, [0-9]+ bytes checked" || return
	# What a client sends, its device receives: about all that was checked goes by there, of two
	# hosts half on each. So it was not shared memory.
	line=$(grep -oE '[0-9]+ bytes checked, [0-9]+' "$WORK/mpi.out")
	need_least "what went by interfaces" "${line##* }" $((${line%% *} / part))
}

serve a $IF_A && serve b $IF_B || { cat "$WORK/case.notes"; exit 1; }
for mpi in openmpi mpich; do
	if command -v "mpicc.$mpi" >/dev/null; then
		"mpicc.$mpi" -O1 -w -o "$OWN/bin/data.$mpi" "$here/tests/netns/mpi/data.c" || exit 1
	fi
	for hosts in one two; do
		# UCX connects its RC queue pairs over UD
		run_case ${mpi}_${hosts}_rc data $mpi $hosts rc_verbs,ud_verbs:aux,self
		run_case ${mpi}_${hosts}_ud data $mpi $hosts ud_verbs,self
	done
done
unprivileged_end
finish_cases
