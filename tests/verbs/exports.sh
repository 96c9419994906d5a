#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the library exports against exports.tsv, which was taken from rdma-core 44's: every symbol
# under its version node, of its type, nothing else; and its name and the names that it needs.
# exports.sh BUILD
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
lib=${1:?usage: exports.sh BUILD}/lib/libibverbs.so.1
failed=0

check() {
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		failed=1
	fi
}

# symbol, node, F or O: of defined symbols that are not the nodes themselves; @@ is the default
# version.
exported() {
	readelf --wide --dyn-syms "$lib" | awk '
		$7 != "UND" && $4 ~ /FUNC|OBJECT/ && $8 ~ /@/ && $8 !~ /^IBVERBS_/ {
			split($8, name, "@+")
			print name[1] "\t" name[2] "\t" ($8 ~ /@@/ ? "" : "not-default ") ($4 == "FUNC" ? "F" : "O")
		}' | sort
}

wanted() { tail -n +2 "$here/exports.tsv" | sort; }

same_symbols() { diff <(wanted) <(exported); }
count_is_146() { [ "$(exported | wc -l)" -eq 146 ]; }
# A symbol without a version would be one that the map forgot to hide (the nodes themselves are
# absolute symbols).
nothing_unversioned() { ! readelf --wide --dyn-syms "$lib" | awk '$7 != "UND" && $7 != "ABS" && $4 ~ /FUNC|OBJECT/ && $8 !~ /@/ { print; found = 1 } END { exit !found }'; }
soname() { readelf --dynamic "$lib" | grep -q 'SONAME.*\[libibverbs\.so\.1\]'; }
# Built with -fstack-protector-strong, and with the C library's calls that know the size of their
# buffer.
needs_chk() { readelf --wide --dyn-syms "$lib" | awk -v name="$1" '$7 == "UND" && $8 ~ "^" name "@" { found = 1 } END { exit !found }'; }
development_link() { [ "$(readlink "$(dirname "$lib")/libibverbs.so")" = libibverbs.so.1 ]; }

check exports__are_the_146_of_the_table same_symbols
check exports__count count_is_146
check exports__none_without_a_version nothing_unversioned
check exports__soname soname
check exports__link_for_dlopen development_link
check hardening__stack_protector needs_chk __stack_chk_fail
check hardening__fortified_calls needs_chk __snprintf_chk
exit $failed
