#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# The manual pages: well-formed, and complete as seen from the command and the library.
# man.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

man7=$BUILD/share/xroce.7
man_cm=$BUILD/share/xroce-rdmacm.7
mapfile -t pages < <(ls man/*.[78] | sed "s,^man/,$BUILD/share/,")
make_here -s "${pages[@]}" || exit 1
page() { mandoc -Tutf8 "$BUILD/share/$1" | col -b; }
# of_subcommand NAME: the page that tells about it
of_subcommand() { [ -e "man/xroce-$1.8" ] && echo "xroce-$1.8" || echo xroce.8; }

# is_complete SEEN LEAST MISSING: as many were looked for as there are at least; none is missing.
is_complete() {
	[ "$1" -ge "$2" ] && [ -z "$3" ] || { note "not in the page, of $1:$3"; return 1; }
}

man__lint() {
	mandoc -Tlint -W warning "${pages[@]}" >"$work/lint" && [ ! -s "$work/lint" ] || show lint
}

man__nothing_left_to_fill_in() { ! grep -n '@[A-Z_]*@' "${pages[@]}"; }

man__every_subcommand_and_option() {
	local word missing=

	for word in $(subcommands); do
		page "$(of_subcommand "$word")" >"$work/page"
		grep -qE "^ +(xroce )?$word( |\$)" "$work/page" || missing+=" $word"
		for option in $(options_of "$word"); do
			grep -qE -e "^[[:space:]]+(-., )?$option( |\[=|\$)" "$work/page" || missing+=" $word:$option"
		done
	done
	[ -z "$missing" ] || { note "not in the pages:$missing"; return 1; }
	page "$(of_subcommand run)" | grep -qE -e '-d, --dev' # the search finds what is there
}

# The same letter is the same option in all subcommands; --sizes of bench is several of --size.
man__a_letter_is_one_option() {
	local word

	for word in $(subcommands); do
		"$BUILD/bin/xroce" "$word" --help | sed -nE 's/^  -(.), --([a-z-]+[a-rt-z-])s?( .*)?$/\1 \2/p'
	done | sort -u >"$work/letters"
	cut -d' ' -f1 "$work/letters" | uniq -d >"$work/twice"
	[ ! -s "$work/twice" ] || { note "letters of two options: $(grep -f "$work/twice" "$work/letters")"; return 1; }
	[ "$(wc -l <"$work/letters")" -ge 25 ]
}

# A long option takes the same in all subcommands, as in "--port KIND".
man__a_long_name_is_one_option() {
	local word

	for word in $(subcommands); do
		"$BUILD/bin/xroce" "$word" --help | sed -nE 's/^  (-., )?(--[a-z0-9-]+)(\[=.*\]| [A-Z][^ ]*)?(  .*)?$/\2\3/p'
	done | sort -u | sed 's/\[=/ &/' >"$work/names"
	cut -d' ' -f1 "$work/names" | uniq -d >"$work/twice"
	[ ! -s "$work/twice" ] || { note "options of two kinds: $(grep -f "$work/twice" "$work/names")"; return 1; }
	[ "$(wc -l <"$work/names")" -ge 60 ]
}

man__every_variable() {
	local name missing= seen=0

	page xroce.7 >"$work/page"
	for name in $(grep -rhoE '"XROCE_[A-Z_]+"' user | tr -d '"' | sort -u); do
		seen=$((seen + 1))
		grep -qE "^ +$name\$" "$work/page" || missing+=" $name"
	done
	is_complete $seen 8 "$missing"
}

# The words that a variable takes, as the option of xroce run that sets it says them.
man__every_word() {
	local variable word missing= seen=0

	for variable in XROCE_TX XROCE_XDP; do
		page xroce.7 | sed -n "/^ *$variable\$/,/^ *XROCE_[^TX]/p" >"$work/page"
		for word in $("$BUILD/bin/xroce" run --help | sed -n "s/.*: \(.*\) ($variable)/\1/p" |
			sed 's/,//g; s/ or / /'); do
			seen=$((seen + 1))
			grep -qw "$word" "$work/page" || missing+=" $variable=$word"
		done
	done
	is_complete $seen 8 "$missing"
}

man__every_drop_reason() {
	local name missing= seen=0

	for name in $(sed -nE 's/^\tX\(([a-z_]+), .*/\1/p' include/xroce/abi.h); do
		seen=$((seen + 1))
		grep -qx "\.It Li $name" "$man7" || missing+=" $name"
	done
	is_complete $seen 30 "$missing"
}

# xroce-counters(7) has each row of both tables, none of it twice.
man__every_counter() {
	local name missing= seen=0

	page xroce-counters.7 | grep -oE '^ +[a-z_0-9]+' | tr -d ' ' >"$work/page"
	for name in $(sed -nE -e 's/^\t(ENGINE|GAUGE)\(([a-z_]+),.*/\2/p' \
		-e 's/^\t(XDP|SOCK)\(([a-z_]+),.*/\L\1_\E\2/p' user/tools/counters.c) \
		$(sed -nE 's/^\t\{ NAME_[A-Z0-9]+, "([a-z_0-9]+)".*/\1/p' user/tools/counters.c); do
		seen=$((seen + 1))
		grep -qx "$name" "$work/page" || missing+=" $name"
	done
	is_complete $seen 110 "$missing"
}

man__every_finding_of_explain() {
	local name missing= seen=0

	for name in $(sed -nE 's/^\tX\([a-z_]+, "([a-z-]+)".*/\1/p' user/tools/explain/explain_rule.h); do
		seen=$((seen + 1))
		grep -qE "^\.It Li (.* )?$name( |\$)" man/xroce-explain.8 || missing+=" $name"
	done
	is_complete $seen 30 "$missing"
}

# Each map that xroce(7) names is one.
man__every_map_is_one() {
	local name seen=0

	for name in $(sed -n 's/^\.It Li \(xroce_[a-z_]*\)$/\1/p' "$man7"); do
		seen=$((seen + 1))
		grep -q "\"$name\"" include/xroce/abi.h || { note "no map $name"; return 1; }
	done
	[ $seen -ge 6 ]
}

# The numbers of LIMITS in xroce-rdmacm(7), in their order, as the sources have them.
man__limits_of_rdmacm() {
	local row name

	for row in user/rdmacm/cm_device.c:CONNECTIONS_MAX user/rdmacm/cm_device.c:LISTENERS_MAX \
		user/rdmacm/id.h:CONN_BACKLOG_MAX include/xroce/abi.h:XROCE_MAX_CONN \
		user/broker/dead_peers.c:DEAD_PEERS_UNCONFIRMED \
		user/rsocket/rsocket_dgram.h:DGRAM_MOST_PEERS user/rsocket/rsocket_close.c:MOST_ENDING; do
		name=${row#*:}
		sed -nE "s/.*\b$name\b[ =	]+([0-9]+).*/\1/p" "${row%:*}" | head -n 1
	done | sed -E 's/([0-9])([0-9]{3})$/\1,\2/' >"$work/want"
	sed -n '/^\.Sh LIMITS/,/^\.El/s/^\([0-9,]*[0-9]\).*/\1/p' "$man_cm" >"$work/page"
	[ "$(wc -l <"$work/page")" -eq 7 ] && diff "$work/want" "$work/page" >"$work/differ" || show differ
}

run_cases
