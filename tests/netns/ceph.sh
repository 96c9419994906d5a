#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
# needs: processors
#
# A small Ceph cluster whose messenger is async+rdma, on verbs alone: a monitor and an OSD that
# keeps its objects in memory on A, clients on B. An object of 20 MB is written, read and compared,
# then `rados bench` writes objects by 8 at a time, reads them and compares them.
. "$(dirname "$0")/lib/case.sh"
for program in ceph-mon ceph-osd rados:ceph-common monmaptool:ceph-common; do
	command -v "${program%:*}" >/dev/null ||
		skip_all "${program%:*} is not installed (package ${program#*:})"
done
netns_pair 4500
. "$here/tests/netns/lib/counted.sh"
export XROCE_COUNTERS=1
FSID=11111111-2222-3333-4444-555555555555
OSD=22222222-2222-3333-4444-555555555555

# config HOST DEVICE ADDRESS: $WORK/HOST.conf
config() {
	cat >"$WORK/$1.conf" <<END
[global]
fsid = $FSID
mon_host = v1:$IP4_A:6789
mon_initial_members = a
public_network = ${IP4_A%.*}.0/24
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_type = async+rdma
ms_public_type = async+rdma
ms_cluster_type = async+rdma
ms_async_rdma_device_name = $2
ms_async_rdma_local_gid = $(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${3//./ })
ms_async_rdma_roce_ver = 2
ms_async_rdma_receive_buffers = 8192
ms_async_rdma_buffer_size = 8192
ms_bind_msgr2 = false
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
osd_objectstore = memstore
memstore_device_bytes = 536870912
osd_crush_chooseleaf_type = 0
osd_max_object_name_len = 256
osd_max_object_namespace_len = 64
mon_data = $WORK/mon
osd_data = $WORK/osd
log_file = $WORK/\$name.log
admin_socket = $WORK/\$name.asok
pid_file = $WORK/\$name.pid
run_dir = $WORK
mon_warn_on_insecure_global_id_reclaim_allowed = false
mon_data_avail_crit = 1
END
}

# client SECONDS COMMAND...: runs it at B; its output is the output of `client`.
client() {
	local bound=$1 rc
	shift
	start_on client b "$@"
	finish_at_most "$child" "$bound"
	rc=$?
	[ $rc -eq 0 ] || { fail "it ended with $rc: $*"; show client; return 1; }
}
# ceph_at_most SECONDS ARGUMENT...: ceph at B. A client of Ceph 16.2 that asks the monitor before it
# has the monitor's map is answered `wrong fsid`, over TCP as over RDMA (3 of 60 and 4 of 40 runs
# with 6 busy loops); ceph then ends with EPERM, and is started again here.
ceph_at_most() {
	local bound=$1 _
	shift
	for _ in 1 2 3 4 5; do
		start_on client b ceph -c "$WORK/b.conf" "$@"
		finish_at_most "$child" "$bound" && return
		grep -q 'EPERM: problem getting command descriptions from mon' "$WORK/client.out" || break
	done
	fail "no success: ceph $*"
	show client
	return 1
}
# osd_start: the OSD, its pid in $osd. An OSD that asks too early ends, for the same reason; systemd
# would start it again, as is done here.
osd_start() {
	local _
	for _ in 1 2 3; do
		start_on osd a ceph-osd -c "$WORK/a.conf" -i 0 -f
		osd=$child
		wait_at_most 30 osd_is_up_or_gone
		is_gone_or_zombie "$osd" || return 0
		grep -q 'wrong fsid' "$WORK/osd.out" || return
	done
	return 1
}
osd_is_up_or_gone() {
	is_gone_or_zombie "$osd" ||
		on_b timeout 20 ceph -c "$WORK/b.conf" osd stat 2>/dev/null | grep -q '1 up'
}

cluster() {
	mkdir "$WORK/mon" "$WORK/osd"
	monmaptool --create --fsid $FSID --addv a "v1:$IP4_A:6789" "$WORK/monmap" >"$WORK/made.out" 2>&1 &&
		on_a ceph-mon -c "$WORK/a.conf" --mkfs -i a --monmap "$WORK/monmap" >>"$WORK/made.out" 2>&1 ||
		{ fail "no monitor can be made"; show made; return; }
	start_on mon a ceph-mon -c "$WORK/a.conf" -i a -f
	mon=$child
	wait_until 30 listens_or_gone a 6789 "$mon"
	ceph_at_most 40 osd new $OSD 0 || { show mon; return 1; }
	on_a ceph-osd -c "$WORK/a.conf" --mkfs -i 0 --osd-uuid $OSD >>"$WORK/made.out" 2>&1 ||
		{ fail "no OSD can be made"; show made; return; }
	osd_start || { fail "the OSD does not come up"; show osd; return; }
	ceph_at_most 40 osd pool create p 8
}

objects() {
	head -c 20000000 /dev/urandom >"$WORK/object"
	client 60 rados -c "$WORK/b.conf" -p p put one "$WORK/object" || return
	need_counted client RC 2
	client 60 rados -c "$WORK/b.conf" -p p get one "$WORK/object.read" || return
	need_counted client in 2000
	cmp "$WORK/object" "$WORK/object.read" || fail "the object is not what was written"
}

# 2000 objects of 64 KiB at most: a full OSD stops all writes (docs/frameworks.md). The first bench
# ends with its objects or its seconds, the second with the objects of the first. It compares each
# object, and exits with an error where one differs.
bench() {
	client 40 rados -c "$WORK/b.conf" -p p bench 10 write -b 65536 -t 8 --max-objects 2000 \
		--no-cleanup || return
	need_counted client RC 2
	need_line client 'Total writes made: +[1-9]'
	client 60 rados -c "$WORK/b.conf" -p p bench 30 seq -t 8 || return
	need_line client 'Total reads made: +[1-9]'
	need_counted client in 1000
}

# The daemons live to the end, and exit on request.
ends() {
	local pid
	for pid in $osd $mon; do
		is_gone_or_zombie "$pid" && fail "a daemon has ended"
		kill "$pid"
		finish_at_most "$pid" 20 || fail "a daemon ended with $?"
	done
	need_no_line mon 'Caught signal' && need_no_line osd 'Caught signal'
}

config a $DEV_A $IP4_A
config b $DEV_B $IP4_B
ulimit -n 8192
mon='' osd=''
run_case cluster cluster
if [ -n "$osd" ]; then
	run_case objects objects
	run_case bench bench
	run_case ends ends
fi
finish_cases
