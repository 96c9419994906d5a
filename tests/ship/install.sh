#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# make install into an empty directory: each file is there and does its work, and make uninstall
# leaves nothing. As root. install.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

dest=$work/dest
prefix=$dest/usr/local
make_here -s DESTDIR="$dest" install >"$work/install" 2>&1 || { cat "$work/install"; exit 1; }
# as packages do
strip --strip-unneeded "$prefix"/bin/xroce "$prefix"/lib/xroce/*.so.1 || exit

install__every_file() {
	local file

	for file in bin/xroce lib/xroce/libibverbs.so{.1,} lib/xroce/librdmacm.so{.1,} lib/xroce/bin/rdma \
		lib/pkgconfig/xroce.pc share/bash-completion/completions/xroce \
		lib/systemd/system/xroce{@,-export}.service $(man_pages) \
		share/xroce/{grafana/xroce.json,lab/wire.toml,prometheus/xroce.rules.yml} share/xroce/files.conf \
		share/doc/xroce/{README,CHANGELOG,docs/port}.md \
		share/doc/xroce/LICENSES/{GPL-2.0-only,BSD-2-Clause}.txt; do
		[ -s "$prefix/$file" ] || { note "not there, or empty: $file"; return 1; }
	done
	# Nothing where the loader finds a library by itself.
	! find "$dest" -name 'lib*.so*' | grep -v '/lib/xroce/'
}

# The documents' links lead to installed files.
install__links_of_the_readme() {
	local link links seen=0

	links=$(grep -oE '`(docs|LICENSES)/[A-Za-z0-9_.-]*`|\]\(docs/[^)#]*' README.md | tr -d '`](')
	for link in $links; do
		seen=$((seen + 1))
		[ -e "$prefix/share/doc/xroce/$link" ] || { note "not installed: $link"; return 1; }
	done
	[ $seen -gt 3 ]
}

install__command_finds_its_library() {
	# shellcheck disable=SC2016 # the shell that is run is to expand it
	"$prefix/bin/xroce" run -- sh -c 'echo "$LD_LIBRARY_PATH"' >"$work/out"
	[ "$(cat "$work/out")" = "$(realpath "$prefix/lib/xroce")" ] || show out
}

# Both libraries, as a program finds them that is linked so: by the path in itself alone.
install__pkg_config_links_a_program() {
	local flags

	export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=
	[ "$(pkg-config --variable=libdir xroce)" = /usr/local/lib/xroce ] || return
	# As installed here, which DESTDIR is there to move.
	flags=$(pkg-config --define-variable=libdir="$prefix/lib/xroce" --libs xroce) || return
	cat >"$work/prog.c" <<-'END'
		#include <rdma/rdma_cma.h>
		#include <stdio.h>
		int main(void)
		{
			int n = 0;
			struct ibv_device **list = ibv_get_device_list(&n);
			for (int i = 0; i < n; i++)
				puts(ibv_get_device_name(list[i]));
			puts(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED));
			return !rdma_create_event_channel();
		}
	END
	# shellcheck disable=SC2086 # words
	${CC:-gcc} "$work/prog.c" -lrdmacm $flags -o "$work/prog" || return
	env -u LD_LIBRARY_PATH XROCE_DEV=lo "$work/prog" >"$work/out" || { show out; return 1; }
	[ "$(paste -sd' ' <"$work/out")" = "xroce_lo RDMA_CM_EVENT_ESTABLISHED" ] || show out
}

install__manual_pages_by_man() {
	export MANPATH=$prefix/share/man MANPAGER=cat
	man 8 xroce >"$work/out" && grep -q 'RDMA verbs on any Linux' "$work/out" || show out || return
	man 7 xroce >"$work/out" && grep -q XROCE_SPIN_US "$work/out" || show out
}

# The unit starts the command in its prefix, and systemd knows all of its settings.
install__unit() {
	local unit=$prefix/lib/systemd/system/xroce@.service

	grep -q '^ExecStart=/usr/local/bin/xroce serve %I$' "$unit" || return
	command -v systemd-analyze >/dev/null || skip "no systemd-analyze"
	sed "s|/usr/local/bin|$prefix/bin|" "$unit" >"$work/xroce@lo.service"
	systemd-analyze --man=no verify "$work/xroce@lo.service" >"$work/out" 2>&1
	! grep -E 'xroce@|nknown|nvalid' "$work/out" || { show out; return 1; }
}

install__completion_by_its_name() {
	local file=$prefix/share/bash-completion/completions/xroce

	bash --norc -c '. "$1"; complete -p xroce' _ "$file" | grep -q xroce
}

install__programs_run_on_it() {
	local pid

	[ "$(id -u)" -eq 0 ] || skip "needs root"
	set -- "$prefix"
	# shellcheck source=scripts/netns.sh
	. scripts/netns.sh
	netns_pair 4500
	start server a "$1/bin/xroce" run --dev va -- ibv_rc_pingpong -g 0 -n 100
	pid=$child
	wait_until 20 listens_or_gone a 18515 "$pid"
	in_b timeout 60 "$1/bin/xroce" run --dev vb -- ibv_rc_pingpong -g 0 -n 100 "$IP4_A" &&
		finish "$pid" 30 || { cat "$WORK/server.out"; return 1; }
	in_a "$1/bin/xroce" doctor va
}

# Last: what another put into the same directories stays.
install__uninstall_leaves_nothing() {
	: >"$prefix/bin/other"
	make_here -s DESTDIR="$dest" uninstall || return
	find "$dest" ! -type d >"$work/left"
	[ "$(cat "$work/left")" = "$prefix/bin/other" ] || show left || return
	! find "$dest" -type d -name '*xroce*' | grep .
}

run_cases
