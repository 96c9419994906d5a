#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Runs unmodified programs by the lab's library of cases and prints a table of what each survives,
# as docs/lab.md has it. Root, or a user with user namespaces. A program that is not installed is
# left out. It takes a quarter of an hour.
#
# lab-survey.sh BUILD [PROGRAM...]
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath "${1:?BUILD}")
shift
xroce=$build/bin/xroce
work=$(mktemp -d /tmp/lab-survey.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

pf='-d xroce_eth0 -x 0'
# NAME FILES-OF-CASES SERVER CLIENT: the client is SERVER and h1's address, unless it is given.
names=() files=() servers=() clients=()
program() {
	local command
	read -r command _ <<<"$3"
	command -v "$command" >/dev/null || return 0
	names+=("$1") files+=("$2") servers+=("$3") clients+=("${4:-$3 \$LAB_IP1}")
}
program ibv_rc_pingpong "wire host" 'ibv_rc_pingpong -d xroce_eth0 -g 0 -c -n 10000'
program ib_send_bw wire "ib_send_bw $pf -n 300"
program ib_write_bw wire "ib_write_bw $pf -n 300"
program ib_read_bw wire "ib_read_bw $pf -n 300"
program ib_atomic_bw wire "ib_atomic_bw $pf -n 300"
program ib_send_lat host "ib_send_lat $pf -D 3"
program rping "wire connect" 'rping -s -a $LAB_IP1 -C 50 -V' 'rping -c -a $LAB_IP1 -C 50 -V'
fio='fio --ioengine=rdma --port=14200 --bs=64k --size=8m --thread --verify=crc32c'
program fio "wire connect" "$fio --name=server --rw=read --iodepth=128" \
	"$fio --name=client --rw=write --iodepth=8 --do_verify=0 --verify_state_save=0 --hostname=\$LAB_IP1 --verb=send"
ucx='UCX_TLS=rc_verbs,ud_verbs:aux UCX_NET_DEVICES=xroce_eth0:1 UCX_IB_GID_INDEX=0 ucx_perftest'
! ucx_perftest -h 2>&1 | grep -q '^ *-P <0|1>' || ucx+=' -P 0'
if command -v ucx_perftest >/dev/null; then
	program ucx_perftest wire "env $ucx -t tag_bw -n 1000 -s 20000" \
		"env $ucx -t tag_bw -n 1000 -s 20000 \$LAB_IP1"
fi
# Rank 0 in h1, rank 1 in h2, which a process there waits for.
if command -v mpicc.mpich >/dev/null && command -v mpiexec.hydra >/dev/null; then
	mpicc.mpich -O2 -w -o data "$here/tests/netns/mpi/data.c"
	cat >agent <<-END
		#!/bin/sh
		while [ "\$1" != 10.77.0.2 ]; do shift; done
		shift
		exec nsenter -t "\$(cat $work/h2)" -n "$xroce" run --dev eth0 -- /bin/sh -c "\$*"
	END
	chmod +x agent
	program mpi wire "sh -c 'while [ ! -e h2 ]; do sleep 0.05; done
		MPIR_CVAR_NOLOCAL=1 UCX_TLS=rc_verbs,ud_verbs:aux UCX_NET_DEVICES=xroce_eth0:1 \
		mpiexec.hydra -launcher ssh -launcher-exec $work/agent -localhost \$LAB_IP1 \
		-hosts \$LAB_IP1,10.77.0.2 -n 2 ./data; echo \$? >done'" \
		"sh -c 'rm -f done; echo \$\$ >h2; while [ ! -e done ]; do sleep 0.05; done; rm h2; exit \$(cat done)'"
fi
program ibv_ud_pingpong wire 'ibv_ud_pingpong -d xroce_eth0 -g 0 -n 500'
program ibv_uc_pingpong wire 'ibv_uc_pingpong -d xroce_eth0 -g 0 -n 500'

for i in "${!names[@]}"; do
	[ $# = 0 ] || [[ " $* " == *" ${names[i]} "* ]] || continue
	for file in ${files[i]}; do
		echo "== ${names[i]}: $file" >&2
		"$xroce" lab --cases "$file" --each --deadline 25 --report "$work/${names[i]}.$file.json" \
			--h1 "${servers[i]}" --h2 "${clients[i]}" >&2 </dev/null
	done
done
"$(command -v /usr/bin/python3 || echo python3)" - "$work"/*.json <<'END_OF_PYTHON'
import json, os, sys

print("| program | cases | survived | not survived | not reached |\n|---|---|---|---|---|")
for path in sys.argv[1:]:
    program, file = os.path.basename(path).split(".")[:2]
    cases = json.load(open(path))["cases"]
    failed = [f"{c['name']} ({c['why']})" for c in cases if c["result"] == "failed"]
    count = lambda result: sum(c["result"] == result for c in cases)
    print(f"| {program} | {file} | {count('survived')} | {', '.join(failed) or 'none'} | {count('not reached')} |")
END_OF_PYTHON
