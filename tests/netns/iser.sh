#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# iSCSI by RDMA (iSER), which connects by librdmacm: tgt's target, and libiscsi as the initiator, in
# its own programs and in QEMU's block layer. Written data is read back, found in the target's file,
# and read by another connection.
#
# Requests are of 256 KiB at most: libiscsi 1.19 refuses more than 512 KiB by iSER, and crashes then
# (docs/frameworks.md).
. "$(dirname "$0")/lib/case.sh"
for program in tgtd:tgt iscsi-inq:libiscsi-bin qemu-io:qemu-utils; do
	command -v ${program%:*} >/dev/null ||
		skip_all "${program%:*} is not installed (package ${program#*:})"
done
netns_pair 4500
. "$here/tests/netns/lib/counted.sh"
. "$here/tests/netns/lib/unprivileged.sh"
. "$here/tests/netns/lib/cm.sh"
export XROCE_COUNTERS=1
TARGET=iqn.2026-11.xroce:disk
# Names that Debian's programs give themselves: tgt lets in initiators by address and by name.
names=(iqn.2008-11.org.linux-kvm)
for program in iscsi-inq iscsi-readcapacity16 iscsi-test iscsi-test-2; do
	names+=("iqn.2007-10.com.github:sahlberg:libiscsi:$program")
done

# target_start: the target at A; its file is $WORK/disk, its pid is in $target. Its control socket
# is in a private directory.
target_start() {
	truncate -s 32M "$WORK/disk"
	# shellcheck disable=SC2016 # the shell that it starts expands it
	start target a unshare --mount sh -c 'mkdir -p /run/tgtd && mount -t tmpfs tgtd /run/tgtd &&
		exec "$0" "$@"' "$XROCE" run --dev $IF_A -- \
		tgtd -f --iscsi portal=$IP4_A:3260 --iser port=3260
	target=$child
	wait_until 20 cm_listens "$target" || { fail "the target does not listen"; show target; return 1; }
	admin --mode target --op new --tid 1 --targetname $TARGET &&
		admin --mode logicalunit --op new --tid 1 --lun 1 --backing-store "$WORK/disk" &&
		admin --mode target --op bind --tid 1 --initiator-address ALL || return
	for name in "${names[@]}"; do
		admin --mode target --op bind --tid 1 --initiator-name $name || return
	done
}
# admin OPTION...: as tgtadm, of that target
admin() {
	nsenter --target "$target" --mount --net tgtadm --lld iser "$@" >"$WORK/admin.out" 2>&1 ||
		{ fail "tgtadm $*"; show admin; }
}

# initiator COMMAND...: runs it at B, with the disk's address appended; it must exit with 0.
initiator() {
	local rc
	start_on initiator b "$@" "iser://$IP4_A/$TARGET/1"
	finish_at_most "$child" 40
	rc=$?
	[ $rc -eq 0 ] || { fail "it ended with $rc: $*"; show initiator; show target; return 1; }
}

describes() {
	initiator iscsi-inq && need_line initiator 'DIRECT_ACCESS'
	initiator iscsi-readcapacity16 && need_line initiator 'ADDRESS:65535'
}

# Writes and reads of one connection, then of another; the target's file has the same bytes.
data() {
	local i at words=()
	for ((i = 0; i < 24; i++)); do
		words+=(-c "write -P $((i + 1)) ${i}m 256k" -c "write -P $((i + 101)) $((i * 1024 + 512))k 4k"
			-c "aio_write -P $((i + 51)) $((i * 1024 + 600))k 64k")
	done
	words+=(-c aio_flush)
	for ((i = 0; i < 24; i++)); do
		words+=(-c "read -P $((i + 1)) ${i}m 256k" -c "read -P $((i + 51)) $((i * 1024 + 600))k 64k")
	done
	initiator qemu-io -f raw "${words[@]}" || return
	need_no_line initiator 'failed|error'
	need_equal "operations" "$(grep -cE '^(wrote|read) ' "$WORK/initiator.out")" 120
	# the target fetches by READ, and answers by WRITE
	need_counted initiator READ 48 && need_counted initiator WRITE 48
	words=()
	for ((i = 0; i < 24; i++)); do
		words+=(-c "read -P $((i + 101)) $((i * 1024 + 512))k 4k")
	done
	initiator qemu-io -f raw "${words[@]}" || return
	need_no_line initiator 'failed|error'
	for ((i = 0; i < 24; i++)); do
		for at in "${i}:0:262144:$((i + 1))" "$i:524288:4096:$((i + 101))" \
			"$i:614400:65536:$((i + 51))"; do
			IFS=: read -r mib offset n byte <<<"$at"
			cmp -s <(tail -c +$((mib * 1048576 + offset + 1)) "$WORK/disk" | head -c "$n") \
				<(head -c "$n" /dev/zero | tr '\0' "\\$(printf %03o "$byte")") ||
				{ fail "the target's file at MiB $mib, $offset"; return; }
		done
	done
}

# suite TEST...: some of libiscsi's own tests
suite() {
	local test
	for test in "$@"; do
		initiator iscsi-test-cu --dataloss --test="ALL.$test" || return
		need_line initiator '\.\.\.passed' && need_no_line initiator 'FAILED' || return
	done
}

target_start || { cat "$WORK/case.notes"; exit 1; }
run_case describes describes
run_case data data
run_case suite suite Read10.Simple Read16.Simple Write10.Simple Write16.Simple \
	Write10.BeyondEol
stop "$target"
finish_cases
