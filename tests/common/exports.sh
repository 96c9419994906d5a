# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a library exports against a table, for the exports.sh of each library: sourced with $lib,
# $table and $nodes (a regular expression of the version nodes' names) set. $failed is 1 after a
# check that failed.
# shellcheck shell=bash disable=SC2154,SC2034
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
	readelf --wide --dyn-syms "$lib" | awk -v nodes="^($nodes)_" '
		$7 != "UND" && $4 ~ /FUNC|OBJECT/ && $8 ~ /@/ && $8 !~ nodes {
			split($8, name, "@+")
			print name[1] "\t" name[2] "\t" ($8 ~ /@@/ ? "" : "not-default ") \
			      ($4 == "FUNC" ? "F" : "O")
		}' | sort
}

same_symbols() { diff <(tail -n +2 "$table" | sort) <(exported); }
# named_in FILE: each symbol of the table is a word there.
named_in() {
	! tail -n +2 "$table" | cut -f1 | grep -vxFf <(grep -oE '[A-Za-z_0-9]+' "$1")
}
count_is() { [ "$(exported | wc -l)" -eq "$1" ]; }
# An unversioned symbol was not hidden by the version script; the version nodes are absolute.
nothing_unversioned() {
	! readelf --wide --dyn-syms "$lib" | awk '
		$7 != "UND" && $7 != "ABS" && $4 ~ /FUNC|OBJECT/ && $8 !~ /@/ { print; found = 1 }
		END { exit !found }'
}
soname_is() { [[ $(readelf --dynamic "$lib") == *"SONAME"*"[$1]"* ]]; }
needs() { [[ $(readelf --dynamic "$lib" | grep NEEDED) == *"[$1]"* ]]; }
needs_no() { ! needs "$1"; }
# Undefined here, in any version.
uses() {
	readelf --wide --dyn-syms "$lib" |
		awk -v name="$1" '$7 == "UND" && $8 ~ "^" name "@" { found = 1 } END { exit !found }'
}
development_link() { [ "$(readlink "${lib%.1}")" = "${lib##*/}" ]; }
