#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long bookworm XROCE_RELEASE=bookworm
# tier: long trixie XROCE_RELEASE=trixie
# tier: long sid XROCE_RELEASE=sid
#
# Debian's releases: in a chroot of each, the project builds with the compilers of that release, and
# unmodified programs of that release run on our libraries, between two network namespaces. The
# scripts of tests/netns run the programs and check their output. As root, with mmdebstrap and a
# mirror.
#
#   releases.sh BUILD	all releases, or XROCE_RELEASE
#   releases.sh BUILD table	prints the last results, as docs/frameworks.md has them
#   releases.sh BUILD rows	prints the first column of that table
#
# BUILD/releases keeps the chroots as *.tar.gz, with which a second run needs no mirror, their logs
# as *.log, and the results as *.tsv. XROCE_ROW is a pattern of rows to run; MIRROR=URL, if not this
# machine's own.

# A line a row of the table: a package, the script below tests/, its cases, and the program.
rows() {
	cat <<'END'
gcc build all xroce, compiled by gcc and clang of the release
ibverbs-utils netns/query.sh devinfo `ibv_devinfo`
infiniband-diags netns/sysfs.sh ibstat_root,ibstat_user `ibstat`, `ibstatus`
ibverbs-utils netns/pingpong.sh rc_4096_1024_v4,rc_4096_1024_events_v6 `ibv_rc_pingpong`
ibverbs-utils netns/pingpong.sh uc_4096_4096_v6 `ibv_uc_pingpong`
ibverbs-utils netns/pingpong.sh ud_2048_v6 `ibv_ud_pingpong`
ibverbs-utils netns/pingpong.sh srq_4096_1024_v4 `ibv_srq_pingpong`
ibverbs-utils netns/pingpong.sh xsrq_4096_v4 `ibv_xsrq_pingpong`
perftest netns/perftest.sh send_bw_64,send_bw_4096_uc,send_bw_4096_xrc `ib_send_bw`
perftest netns/perftest.sh send_lat_64,send_lat_64_ud_v6 `ib_send_lat`
perftest netns/perftest.sh write_bw_65536,write_bw_64_qps `ib_write_bw`
perftest netns/perftest.sh write_lat_64,write_lat_64_uc_v6 `ib_write_lat`
perftest netns/perftest.sh read_bw_65536,read_bw_64_v6 `ib_read_bw`
perftest netns/perftest.sh read_lat_64 `ib_read_lat`
perftest netns/perftest.sh atomic_bw_8_add,atomic_bw_8_swap `ib_atomic_bw`
perftest netns/perftest.sh atomic_lat_8_add `ib_atomic_lat`
perftest netns/cm_perftest.sh between_send_bw_65536,between_send_lat_1024_ud,between_atomic_lat_8 perftest's `-R`
perftest netns/raw.sh perftest_bw `raw_ethernet_bw`
perftest netns/raw.sh perftest_lat `raw_ethernet_lat`
rdmacm-utils netns/cm_utils.sh rping_between_v4,rping_own_qp_between_v6 `rping`
rdmacm-utils netns/cm_utils.sh ucmatose_between_v4,ucmatose_migrate_between_v6 `ucmatose`
rdmacm-utils netns/cm_datagrams.sh udaddy_between_v4,udaddy_between_v6 `udaddy`
rdmacm-utils netns/cm_utils.sh cmtime_between_v4 `cmtime`
rdmacm-utils netns/cm_utils.sh server_client_between_v4 `rdma_server`, `rdma_client`
rdmacm-utils netns/cm_utils.sh xserver_between_v4,xserver_xrc_between_v4 `rdma_xserver`, `rdma_xclient`
rdmacm-utils netns/cm_rsocket.sh stream_b,stream_v6_b `rstream`
rdmacm-utils netns/cm_rsocket.sh mapped_b `riostream`
rdmacm-utils netns/cm_rsocket.sh file_b `rcopy`
rdmacm-utils netns/cm_rsocket.sh datagrams_b,datagrams_v6_b `udpong`
rdmacm-utils netns/cm_mckey.sh mckey_v4,mckey_v6 `mckey`
python3-pyverbs foreign/pyverbs.sh all pyverbs, its own suite
ucx-utils netns/ucx.sh ud_v4,rc_v4 `ucx_perftest`
openmpi-bin netns/mpi.sh openmpi_two_rc_4 Open MPI, 4 ranks on two hosts
mpich netns/mpi.sh mpich_two_rc_4 MPICH, 4 ranks on two hosts
libfabric-bin netns/cm_libfabric.sh msg_between_v4 `fi_pingpong -e msg`
libfabric-bin netns/cm_libfabric.sh dgram_between_v4 `fi_pingpong -e dgram`
fio netns/cm_fio.sh write_between_v4,read_between_v4,verify_between_v4 `fio`
qperf netns/cm_qperf.sh qperf_between,rc_bi_bw_between,rc_lat_between,ver_rc_fetch_add_between `qperf`
END
}
releases=(bookworm trixie sid)

# table DIRECTORY: with the results of each release, lines of program, version and result.
table() {
	local program release version result

	printf '| program | Debian 12 (bookworm) | Debian 13 (trixie) | sid |\n|---|---|---|---|\n'
	while read -r _ _ _ program; do
		printf '| %s |' "$program"
		for release in "${releases[@]}"; do
			version='' result='not run'
			[ ! -f "$1/$release.tsv" ] || IFS=$'\t' read -r version result < <(
				awk -F '\t' -v want="$program" '$1 == want { print $2 "\t" $3 }' \
					"$1/$release.tsv")
			printf ' %s |' "${version:+$version: }$result"
		done
		echo
	done < <(rows)
}

case ${2:-} in
rows) rows | cut -d ' ' -f 4- && exit ;;
table) table "$1/releases" && exit ;;
esac
if [ -z "${XROCE_RELEASE:-}" ]; then
	failed=0
	for release in "${releases[@]}"; do
		XROCE_RELEASE=$release "$0" "$@" || failed=1
	done
	exit $failed
fi
release=$XROCE_RELEASE
. "$(dirname "$0")/lib/chroot.sh"
results=$BUILD/releases/$release.tsv

# ---- the chroot ----

# What the project and its tests need; the programs follow one by one, as a release may lack one.
packages=(
	gcc make pkg-config clang libc6-dev linux-libc-dev bpftool
	libbpf-dev libxdp-dev libfuse3-dev libisal-dev libmnl-dev libibverbs-dev librdmacm-dev
	libmicrohttpd-dev libjson-c-dev libsmartcols-dev libncurses-dev
	ethtool hostname iproute2 iputils-ping mount procps python3-minimal util-linux
)
mapfile -t programs < <(rows | cut -d ' ' -f 1 | sort -u)
programs+=(libopenmpi-dev libmpich-dev)
# The suite of pyverbs is in /usr/share/doc. A mirror's copy of sid may be older than its Release
# file permits; its signature is checked all the same.
options=("${chroot_options[@]}" --aptopt='Acquire::Check-Valid-Until "false"')
for path in '/usr/share/doc/*' '/usr/share/man/*' '/usr/share/info/*' '/usr/share/locale/*' \
	'/usr/lib/llvm-*/lib/*.a' '/usr/lib/*/lib*mpi*.a'; do
	options+=(--dpkgopt="path-exclude=$path")
done
options+=(--dpkgopt='path-include=/usr/share/doc/rdma-core/*')
# shellcheck disable=SC2016 # the shell of the hook expands these
install_each='for p in '${programs[*]}'; do
	DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get -q -y --no-install-recommends install "$p" ||
		echo "$p cannot be installed"
done; chroot "$1" apt-get clean'

chroot_make "$release" MIRROR "$BUILD/releases/$release-HASH.tar.gz" \
	"$(printf '%s\n' "${packages[@]}" "${options[@]}" "$install_each")" "${results%.tsv}.log" \
	"${options[@]}" --include="$(IFS=,; echo "${packages[*]}")" --customize-hook="$install_each"
chroot_sources || exit 1
# libfabric 1.17 looks up the host's name.
echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts" || exit 1

# inside COMMAND...: there, at the top of the sources, for at most $seconds. Not by chroot(2), in
# which the kernel permits no user namespace. The check finds processes by a variable, so the
# environment stays.
seconds=120
inside() {
	env XROCE_TEST_ENDS=$((EPOCHSECONDS + seconds)) PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		TMPDIR=/tmp unshare --mount --propagation private sh -c 'cd "$0" &&
			pivot_root . . && umount -l . && cd /xroce && exec "$@"' "$root" "$@"
}

# ---- the rows; each leaves its failure in $result ----

# build_row: also the programs of tests/netns that the scripts of other rows run.
build_row() {
	inside make -s -k -j"$(nproc)" CFLAGS=-O2 WERROR=1 all \
		build/tests/netns/{sysfs,limited} >"$work/out" 2>&1 || result=failed
	! grep -q 'warning:' "$work/out" || result=failed
	[ "$result" = ok ] || result=$(grep -m 1 -E 'warning:|error:|Error' "$work/out")
}

# pyverbs_row SCRIPT: all tests; tests that need an adapter are skipped.
pyverbs_row() {
	local passed skipped failed seconds=600

	inside "tests/$1" build >"$work/out" 2>&1
	read -r passed skipped failed < <(sed -nE \
		's/^pyverbs: ([0-9]+) ok, ([0-9]+) skipped, ([0-9]+) failed$/\1 \2 \3/p' "$work/out")
	if [ "${failed:-1}" -eq 0 ] && [ "$passed" -ge 150 ]; then
		result="ok, $passed tests, $skipped skipped"
	else
		result="${passed:-no} tests ok, ${failed:-?} failed"
	fi
}

# script_row SCRIPT CASES: a case that came too late is tried again, as by scripts/check.sh.
script_row() {
	local _

	for _ in 1 2; do
		XROCE_CASE="@(${2//,/|})" XROCE_CASES='' inside "tests/$1" build >"$work/out" 2>&1
		grep -q '^late ' "$work/out" || break
	done
	[ "$(grep -c '^ok ' "$work/out")" -ne "$(tr , '\n' <<<"$2" | wc -l)" ] || return 0
	result=$(awk '/^(not ok|late|skip) / { line = $0; found = 1; next }
		found && sub(/^# +/, "") { print; line = ""; exit }
		{ last = $0 }
		END { if (line) print line; else if (!found) print last }' "$work/out")
	result=${result:-no result}
}

# lacks PACKAGE: why no program of the package can use RDMA in this release.
lacks() {
	case $1 in
	ucx-utils | openmpi-bin | mpich)
		compgen -G "$root/usr/lib/*/ucx/libuct_ib.so*" >/dev/null || echo "UCX is built without RDMA"
		;;
	esac
}

# run_row PACKAGE SCRIPT CASES PROGRAM
run_row() {
	local package=$1 script=$2 cases=$3 program=$4 version result=ok slug

	version=$(inside dpkg-query -W -f '${Version}' "$package" 2>/dev/null | sed 's/^[0-9]*://; s/-[^-]*$//')
	if [ -z "$version" ]; then
		result="not installable"
	elif [ -n "$(lacks "$package")" ]; then
		result=$(lacks "$package")
	elif [ "$script" = build ]; then
		version+=", $(inside clang -dumpversion)"
		build_row
	elif [ "${script##*/}" = pyverbs.sh ]; then
		pyverbs_row "$script"
	else
		script_row "$script" "$cases"
	fi
	result=$(head -n 1 <<<"$result" | tr '|\t' '  ' | cut -c 1-120)
	slug=${release}_$(tr -cs 'A-Za-z0-9\n' _ <<<"${program//\`/}" | sed 's/^_*//; s/_*$//')
	case $result in
	ok*) echo "ok $slug" ;;
	*"built without RDMA") echo "skip $slug $result" ;;
	*)
		sed 's/^/    /' "$work/out" 2>/dev/null
		echo "not ok $slug"
		bad=1
		;;
	esac
	[ ! -f "$results" ] || awk -F '\t' -v is="$program" '$1 != is' "$results" >"$work/results"
	printf '%s\t%s\t%s\n' "$program" "$version" "$result" >>"$work/results"
	cp "$work/results" "$results"
}

bad=0
while read -r package script cases program <&3; do
	# shellcheck disable=SC2053 # a pattern
	[[ $script = build || $program == ${XROCE_ROW:-*} ]] || continue
	run_row "$package" "$script" "$cases" "$program"
done 3< <(rows)
exit $bad
