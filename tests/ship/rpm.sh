#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: long
#
# The RPM packages: they build from the files in git, with the libraries of this system. What they
# require is not looked up, as Debian has no database of RPMs. rpm.sh [BUILD]
. "$(dirname "$0")/lib/case.sh"

command -v rpmbuild >/dev/null || { echo "skip rpm no rpmbuild"; exit 0; }
version=$(sed -n 's/^#define XROCE_VERSION "\(.*\)"$/\1/p' include/xroce/version.h)
mkdir -p "$work/SOURCES" "$work/xroce-$version"
{ git ls-files -z 2>/dev/null || find . -path ./build\* -prune -o -type f -print0; } |
	xargs -0 cp -P --parents -t "$work/xroce-$version"
tar -C "$work" -czf "$work/SOURCES/xroce-$version.tar.gz" "xroce-$version"
env -u WERROR -u CC rpmbuild -bb --nodeps --define "_topdir $work" --define 'debug_package %{nil}' \
	share/rpm/xroce.spec >"$work/build" 2>&1
built=$?
rpms=()
for name in xroce xroce-libs xroce-devel; do
	rpms+=("$(echo "$work/RPMS"/*/"$name-$version"-*.rpm)")
done

rpm__builds() {
	[ $built -eq 0 ] && ls "${rpms[@]}" >"$work/out" || { tail -n 30 "$work/build"; return 1; }
}

# holds RPM FILE...: patterns of its files
holds() {
	local rpm=$1 file
	shift

	rpm -qlp "$rpm" >"$work/files" || return
	for file in "$@"; do
		grep -qE "^/usr/$file\$" "$work/files" || { note "not in $rpm: $file"; return 1; }
	done
}

rpm__holds_what_is_installed() {
	# shellcheck disable=SC2046 # words
	holds "${rpms[0]}" bin/xroce 'lib[^/]*/xroce/bin/rdma' $(man_pages '(\.gz)?') share/bash-completion/completions/xroce \
		lib/systemd/system/xroce{@,-export}.service share/xroce/files.conf \
		share/xroce/{grafana/xroce.json,lab/wire.toml,prometheus/xroce.rules.yml} &&
		! grep '\.so' "$work/files" &&
		holds "${rpms[1]}" 'lib[^/]*/xroce/lib'{ibverbs,rdmacm}.so.1 \
			'lib[^/]*/xroce/librspreload.so' &&
		holds "${rpms[2]}" 'lib[^/]*/pkgconfig/xroce.pc' 'lib[^/]*/xroce/lib'{ibverbs,rdmacm}.so
}

# The system's libibverbs has the same names.
rpm__provides_no_library() {
	rpm -qp --provides "${rpms[1]}" >"$work/out" && ! grep -E 'lib(ibverbs|rdmacm|rspreload)' "$work/out" &&
		rpm -qp --requires "${rpms[1]}" >"$work/out" && grep -q '^libbpf\.so' "$work/out" &&
		! grep -E '^lib(ibverbs|rdmacm)' "$work/out"
}

rpm__unpacked_runs() {
	local rpm

	mkdir "$work/root" && cd "$work/root" || return
	for rpm in "${rpms[@]}"; do
		rpm2archive - <"$rpm" | tar xz || return
	done
	usr/bin/xroce --version || return
	XROCE_DEV=lo usr/bin/xroce run -- ibv_devinfo >"$work/out"
	grep -q xroce_lo "$work/out" || show out
}

run_cases
