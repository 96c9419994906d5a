# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# UCX with fewer buffers than its default of 70 MB a process, which each case would clear and
# register again. Runs without variables (mpi.sh's as_it_comes, ucx_hosts.sh) keep the default.

# shellcheck disable=SC2034 # for who sources this
ucx_small=(UCX_RC_VERBS_RX_QUEUE_LEN=1024 UCX_UD_VERBS_RX_QUEUE_LEN=1024
	UCX_RC_VERBS_TX_BUFS_GROW=64 UCX_UD_VERBS_TX_BUFS_GROW=64)
