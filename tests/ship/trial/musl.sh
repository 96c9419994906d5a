#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# Another C library: musl.sh BUILD compiles everything against musl, and links and runs the unit and
# simulator tests. Debian's libraries in them are built against glibc: musl's loader takes itself
# for libc.so.6, and musl_shim.c has the functions that musl lacks. The library and the command
# cannot be
# linked: Debian has no libbpf, libxdp and libmnl for musl. Part of make check-arch.
#
# XROCE_SIM_SEEDS (300 here) and XROCE_SIM_PACKETS (6 here) may be set.
set -u
cd "$(dirname "$0")/../../.." || exit 1
command -v musl-gcc >/dev/null || { echo "skip arch_musl musl-gcc is not installed"; exit 0; }
[ "$(uname -m)" = x86_64 ] || { echo "skip arch_musl the stand-in is for x86_64"; exit 0; }
mkdir -p "$1/arch/musl" && dir=$(cd "$1/arch/musl" && pwd) || exit 1
log=$dir/log
headers=$dir/include
libraries=$dir/lib
debian=/usr/lib/x86_64-linux-gnu
export XROCE_SIM_SEEDS=${XROCE_SIM_SEEDS:-300} XROCE_SIM_PACKETS=${XROCE_SIM_PACKETS:-6}

# The headers of the kernel and of libraries, without glibc's.
rm -rf "$headers" "$libraries" && mkdir -p "$headers" "$libraries" || exit 1
for h in cmocka.h microhttpd.h json-c libsmartcols curses.h ncurses_dll.h term.h unctrl.h isa-l bpf xdp libmnl fuse3 infiniband rdma linux asm-generic x86_64-linux-gnu/asm; do
	ln -s "/usr/include/$h" "$headers/"
done
for l in cmocka isal; do
	so=$(basename "$(readlink -f $debian/lib$l.so)")
	ln -s "$debian/$so" "$libraries/lib$l.so"
	soname=$(objdump -p "$debian/$so" | awk '$1 == "SONAME" { print $2 }')
	ln -s "$debian/$so" "$libraries/$soname"
done
musl-gcc -O2 -fPIC -shared -Wl,-soname,ld-linux-x86-64.so.2 tests/ship/trial/musl_shim.c \
	-o "$libraries/ld-linux-x86-64.so.2" || exit 1

if make --no-print-directory -k -j"$(nproc)" BUILD="$dir/build" WERROR=1 \
	CC="musl-gcc -idirafter $headers" PKG_CONFIG=true PKG_LIBS=-lisal \
	FUSE_CFLAGS="-idirafter $headers/fuse3" \
	LDFLAGS="-L$libraries -Wl,--allow-shlib-undefined" objects unit-tests sim-tests cm-tests >"$log" 2>&1; then
	echo "ok arch_musl__compiles"
else
	grep -v '^  ' "$log" | tail -n 20
	echo "not ok arch_musl__compiles"
fi

failed=0
for source in tests/{unit,sim,cm}/test_*.c; do
	name=$(basename "$source" .c)
	if [ "$name" = test_masks16 ]; then
		echo "skip arch_musl__$name runs in check-sim"
	elif [[ $name =~ ^test_(table|screen|top|records|hostile_maps)$ ]]; then
		echo "skip arch_musl__$name prints by libraries that are built for glibc"
	elif LD_LIBRARY_PATH=$libraries timeout "${XROCE_TEST_TIMEOUT:-900}" \
		"$dir/build/${source%.c}" >"$log" 2>&1 </dev/null; then
		echo "ok arch_musl__$name"
	else
		grep -E 'ERROR|LINE|FAILED|Error' "$log" | head -n 10
		echo "not ok arch_musl__$name"
		failed=1
	fi
done
exit $failed
