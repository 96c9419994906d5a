# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Ranks of MPI or PEs of OpenSHMEM over UCX, started by an unprivileged user: the settings of Open
# MPI, and the program that runs each of them. Sourced after unprivileged.sh and ucx_small.sh.
# Shared memory is left out: $OMPI_MCA_btl, and UCX_TLS in the program.

export HOME=$OWN/home TMPDIR=$OWN/home
# One core for many ranks: waiting ranks let others run.
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib,vader,tcp,ofi,uct

# rank_program [LINES]: makes $OWN/bin/rank, which runs `rank TRANSPORTS COMMAND...` on xroce's
# library and the interface that its host has; the launchers are not on that library. TRANSPORTS:
# UCX_TLS, or `any` for UCX as it comes. LINES of bash may choose another interface, in $dev.
rank_program() {
	cat >"$OWN/bin/rank" <<END
#!/bin/bash
dev=$IF_A
grep -q '^ *$IF_B:' /proc/net/dev && dev=$IF_B
${1:-}
export XROCE_COUNTERS=1
tls=\$1
shift
[ "\$tls" != any ] || exec "$OWN/bin/xroce" run --dev \$dev -- "\$@"
export ${ucx_small[*]}
export UCX_TLS=\$tls UCX_NET_DEVICES=xroce_\$dev:1 UCX_IB_GID_INDEX=0 UCX_WARN_UNUSED_ENV_VARS=n
exec "$OWN/bin/xroce" run --dev \$dev --share always -- "\$@"
END
	chmod 755 "$OWN/bin/rank"
}
