#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# portable.sh BUILD (`make portable`): makes BUILD/portable, a directory that works wherever it lies
# and is mounted, on each system with glibc 2.28 or later: bin/xroce, lib/xroce/ and the rest of an
# installation. It contains parts of other packages: libbpf, libxdp, libelf, zlib, fuse,
# json-c and ncurses from Debian's archives (.a); libsmartcols and libmicrohttpd, which have none
# without further libraries, from Debian's sources; libmnl and ISA-L as shared objects.
#
# The sources come from this machine's mirror, or MIRROR, and stay in BUILD/portable-src. Needs
# scripts/deps.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath -m "${1:?usage: portable.sh BUILD}")
cd "$here"
src=$build/portable-src work=$build/portable-build out=$build/portable
MAX_GLIBC=2.28
libc_dir=$(dirname "$(gcc -print-file-name=libc.so.6)")
loader=$(gcc -print-file-name="$(objdump -p "$(gcc -print-file-name=libc.so.6)" |
	awk '/NEEDED/ { print $2 }' | grep '^ld-')")
umask 022
mkdir -p "$src" "$work/libc"

# fetch PACKAGE...: their source packages, verified by apt as any package.
fetch() {
	local apt=$src/apt suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mkdir -p "$apt"/{lists,cache/archives}/partial
	echo "deb-src $(scripts/mirror.sh) $suite main" >"$apt/sources.list"
	cat >"$apt/conf" <<-END
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::State::lists "$apt/lists";
		Dir::Cache "$apt/cache";
		APT::Sandbox::User "";
	END
	(cd "$src" && export APT_CONFIG=$apt/conf && apt-get -q update &&
		apt-get -q source --download-only --tar-only "$@")
}

# library PACKAGE FILE OPTION...: BUILD/portable-src/FILE.a, by the package's own configure.
library() {
	local package=$1 file=$2 dir=$src/build-$1
	shift 2
	[ ! -s "$src/$file.a" ] || return 0
	ls "$src/$package"_*.orig.tar.* >/dev/null 2>&1 || fetch "$package"
	rm -rf "$dir" && mkdir "$dir"
	tar -C "$dir" --strip-components=1 -xf "$src/$package"_*.orig.tar.[a-z]*[a-z]
	(cd "$dir" && ./configure --quiet --disable-shared --enable-static --with-pic "$@" &&
		make -s -j"$(nproc)") >"$src/$package.log" 2>&1 ||
		{ tail "$src/$package.log"; return 1; }
	find "$dir" -name "$file.a" -exec cp {} "$src/$file.a" \;
	rm -rf "$dir"
}

library util-linux libsmartcols --disable-all-programs --enable-libsmartcols --disable-nls
library libmicrohttpd libmicrohttpd --disable-https --disable-doc --disable-examples --disable-curl \
	--disable-bauth --disable-dauth

# The C library of the link: names and versions, no code. Functions of threads and of dlopen(3) were
# in separate libraries before 2.34, whose names are still there.
for lib in libc.so.6 libm.so.6; do
	python3 scripts/portable/stub.py "$libc_dir/$lib" $MAX_GLIBC "$work/libc/$lib.S" \
		"$work/libc/$lib.map"
	gcc -shared -nostdlib -Wl,-soname,$lib -Wl,--version-script="$work/libc/$lib.map" \
		"$work/libc/$lib.S" -o "$work/libc/$lib"
done
cat >"$work/libc/libc.so" <<END
GROUP ( $work/libc/libc.so.6 $(gcc -print-file-name=libc_nonshared.a) AS_NEEDED ( $loader ) )
END
ln -sf libm.so.6 "$work/libc/libm.so"
for file in old_libc old_start archives; do
	gcc -std=gnu11 -O2 -Wall -fPIC -fvisibility=hidden -c scripts/portable/$file.c \
		-o "$work/$file.o"
done

# Debian's archives are for programs: in a shared library they cannot refer to the variables of
# another one. They use stderr, which is such a variable.
for file in libbpf libxdp; do
	objcopy --redefine-sym stderr=portable_stderr "$(gcc -print-file-name=$file.a)" "$work/$file.a"
done

# $$ is for make, the quotes are for the shell.
options=(
	BUILD="$work" PREFIX=/usr DESTDIR="$out.new"
	PKG_LIBS="$work/libxdp.a $work/libbpf.a -l:libelf.a -l:libz.a -lmnl -lisal"
	TOOL_PKG_LIBS="-l:libfuse3.a -l:libjson-c.a $src/libsmartcols.a $src/libmicrohttpd.a \
-l:libncursesw.a -l:libtinfo.a -Wl,--wrap=main $work/old_start.o"
	LDFLAGS="-L$work/libc $work/old_libc.o $work/archives.o -Wl,-rpath,'\$\$ORIGIN:\$\$ORIGIN/../lib/xroce' \
-Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed"
)
rm -rf "$out" "$out.new"
make --no-print-directory -s -j"$(nproc)" "${options[@]}" all
make --no-print-directory -s "${options[@]}" install
for lib in libmnl.so.0 libisal.so.2; do
	cp -L "$(gcc -print-file-name=$lib)" "$out.new/usr/lib/xroce/$lib"
done
strip --strip-unneeded "$out.new"/usr/bin/xroce "$out.new"/usr/lib/xroce/lib*.so.?
for package in libbpf-dev libxdp-dev libelf-dev zlib1g-dev libfuse3-dev libjson-c-dev libncurses-dev \
	libsmartcols-dev libmicrohttpd-dev libmnl-dev libisal-dev; do
	cp "/usr/share/doc/$package/copyright" "$out.new/usr/share/doc/xroce/LICENSES/$package"
done
mv "$out.new/usr" "$out"
rmdir "$out.new"
echo "$out: $(du -sh "$out" | cut -f1)"
