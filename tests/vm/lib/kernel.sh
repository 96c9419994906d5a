# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The guest's kernel and root file system. Debian's kernel package is downloaded with apt-get and
# unpacked, never installed; package lists that this machine does not have are fetched into a
# directory of the build. All of it is kept in $VM_CACHE. Sourced by guest.sh, which sets
# VM_CACHE, VM_ARCH and VM_TRIPLET.
#
# VM_ROOT, set by the caller, is a directory with the user space of a guest of another architecture,
# whose loader is run by VM_LOADER. Without it the guest has programs and libraries of this machine.
#
#   kernel_get VERSION		VERSION is 5.10, 6.1, 6.12 or newest, that of
#				sid; sets $VM_KERNEL (its files) or $skip_reason
#   kernel_overlay FILE...		sets $VM_OVERLAY: an archive of these
#				programs and their libraries, and of what $VM_OURS lists in /xroce

# What the guest loads at its start, and what a test may load later with modprobe.
VM_MODULES="virtio_pci virtio_net virtio_console 9p 9pnet_virtio crc32_generic ib_uverbs rdma_rxe"
VM_MORE_MODULES="crc32_pclmul e1000e veth tun macvlan bonding 8021q bridge dummy ifb act_mirred sch_netem
	sch_ingress cls_bpf act_bpf cls_matchall cls_u32 xsk_diag udp_diag rdma_ucm udp_tunnel ip6_udp_tunnel overlay fuse"

# kernel_apt SUITE COMMAND...: apt on lists of that suite alone, which lie in the build. A mirror's
# copy of sid may be older than its Release file permits.
kernel_apt() {
	local suite=$1 dir=$VM_CACHE/apt-$1 tool=$2
	shift 2
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"$("$here/scripts/mirror.sh") $suite main" >"$dir/sources.list"
	timeout 120 "$tool" -q -o APT::Architecture=$VM_ARCH -o APT::Architectures=$VM_ARCH \
		-o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" -o APT::Sandbox::User=root \
		-o Acquire::Check-Valid-Until=false -o Acquire::Languages=none \
		-o Acquire::Retries=2 -o Acquire::http::Timeout=30 "$@" </dev/null
}

# kernel_apt_machine SUITE COMMAND...: apt as this machine is set up.
kernel_apt_machine() {
	local tool=$2
	shift 2
	timeout 120 "$tool" -q -o APT::Sandbox::User=root "$@" </dev/null
}

# kernel_package HOW SUITE VERSION: the package that linux-image-ARCH stands for, if it is VERSION;
# or the packages on which that depends, if it has no files itself (Debian 14).
kernel_package() {
	local version=${3//./\\.} pkg parts
	[ "$3" != newest ] || version='[0-9]+\.[0-9]+'
	pkg=$("$1" "$2" apt-cache depends linux-image-$VM_ARCH 2>/dev/null |
		sed -nE "s/^ *Depends: (linux-image-$version[.+][0-9a-z.+-]*)\$/\\1/p" | head -1)
	[ -n "$pkg" ] || return 0
	parts=$("$1" "$2" apt-cache depends "$pkg" | sed -nE 's/^ *Depends: (linux-(binary|modules)-.*)/\1/p')
	echo "${parts:-$pkg}"
}

# kernel_download VERSION DIR: the packages into DIR. The machine's own lists will do if they have
# that version.
kernel_download() {
	local version=$1 dir=$2 suite how=kernel_apt_machine pkg=
	case $version in
	5.10) suite=bullseye ;;
	6.1) suite=bookworm ;;
	newest) suite=sid ;;
	*) suite=bookworm-backports ;;
	esac
	[ "$version" = newest ] || pkg=$(kernel_package $how $suite "$version")
	if [ -z "$pkg" ]; then
		how=kernel_apt
		$how $suite apt-get update || return
		pkg=$(kernel_package $how $suite "$version")
	fi
	[ -n "$pkg" ] || { echo "no package of Linux $version in $suite"; return 1; }
	# shellcheck disable=SC2086 # several packages
	(cd "$dir" && $how $suite apt-get download $pkg)
}

# kernel_unpack_image BZIMAGE: on standard output the ELF kernel inside, if it is packed by xz: it
# boots without the seconds that an emulated processor takes to unpack it. Else the image as it is.
kernel_unpack_image() {
	local image=$1 setup offset length
	if [ $VM_ARCH != amd64 ]; then
		cat "$image"
		return
	fi
	setup=$(od -An -tu1 -j497 -N1 "$image")
	offset=$(od -An -tu4 -j584 -N4 "$image")
	length=$(od -An -tu4 -j588 -N4 "$image")
	offset=$(((setup + 1) * 512 + offset))
	if [ "$(od -An -tx1 -j$offset -N6 "$image" | tr -d ' ')" != fd377a585a00 ]; then
		cat "$image"
		return
	fi
	# after the payload are 4 bytes of its unpacked length
	tail -c +$((offset + 1)) "$image" | head -c $((length - 4)) | xz -dc
}

# kernel_modules DIR NAME...: the files of these modules and of their dependencies, in loading
# order.
kernel_modules() {
	local dir=$1 name
	shift
	for name; do
		awk -v want="$name" '
			function base(path) { sub(".*/", "", path); sub("[.]ko$", "", path); gsub("-", "_", path); return path }
			BEGIN { gsub("-", "_", want) }
			{ sub(":$", "", $1); needs[$1] = ""; for (i = NF; i > 1; i--) needs[$1] = needs[$1] " " $i
			  if (base($1) == want) found = $1 }
			function show(path, n, list, k) {
				if (path in seen) return
				seen[path] = 1
				n = split(needs[path], list, " ")
				for (k = 1; k <= n; k++) show(list[k])
				print path
			}
			END { if (found) show(found) }' "$dir/modules.dep"
	done | awk '!seen[$0]++'
}

# kernel_unpack DIR: from its packages vmlinux, and an initramfs with busybox, iproute2 and the
# modules.
kernel_unpack() {
	local dir=$1 tree root modules deb file number=100
	tree=$(mktemp -d "$dir/tree.XXXXXX") || return
	root=$tree/root
	for deb in "$dir"/linux-*.deb; do
		dpkg-deb -x "$deb" "$tree/package" || return
	done
	# Debian 14 has the image among the modules, and all below /usr.
	if [ -d "$tree/package/usr/lib/modules" ]; then
		mkdir -p "$tree/package/lib" && mv "$tree/package/usr/lib/modules" "$tree/package/lib/" || return
	fi
	modules=$(echo "$tree"/package/lib/modules/*)
	file=$(echo "$tree"/package/boot/vmlinuz-*)
	[ -f "$file" ] || file=$modules/vmlinuz
	kernel_unpack_image "$file" >"$dir/vmlinux" || return
	find "$modules" -name '*.ko.xz' -exec xz -d {} +
	busybox depmod -b "$tree/package" "${modules##*/}" || return
	mkdir -p "$root"/{bin,proc,sys,dev,tmp,host,run,etc/libibverbs.d,lib/modules/"${modules##*/}",load}
	for file in $(kernel_modules "$modules" $VM_MODULES); do
		cp "$modules/$file" "$root/load/$number-${file##*/}" && number=$((number + 1)) || return
	done
	for file in $(kernel_modules "$modules" $VM_MORE_MODULES); do
		mkdir -p "$root/lib/modules/${modules##*/}/${file%/*}"
		cp "$modules/$file" "$root/lib/modules/${modules##*/}/$file" || return
	done
	busybox depmod -b "$root" "${modules##*/}" || return
	for file in $(busybox --list); do
		ln -s busybox "$root/bin/$file"
	done
	cp --remove-destination "$(kernel_program busybox)" "$root/bin/busybox" || return
	echo root:x:0:0:root:/:/bin/sh >"$root/etc/passwd"
	[ -n "$VM_ROOT" ] || cp /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/" || return
	cp "$here/tests/vm/lib/init" "$root/init" && chmod 755 "$root/init" || return
	(cd "$root" && find . | cpio --quiet -o -H newc) >"$dir/initrd.cpio" || return
	rm -rf "$tree"
}

# A cache of another state of these scripts is of no use.
kernel_stamp() { cat "$here/tests/vm/lib/kernel.sh" "$here/tests/vm/lib/init" | cksum | tr ' ' -; }

kernel_get() {
	local dir=$VM_CACHE/$1 stamp log
	stamp=$(kernel_stamp)
	VM_KERNEL=$dir
	[ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || return 0
	mkdir -p "$dir"
	log=$dir/log
	if ! ls "$dir"/linux-*.deb >/dev/null 2>&1; then
		kernel_download "$1" "$dir" >"$log" 2>&1
	fi
	if ! ls "$dir"/linux-*.deb >/dev/null 2>&1; then
		skip_reason="Debian's kernel $1 cannot be downloaded: $(tail -1 "$log")"
		return 1
	fi
	if ! kernel_unpack "$dir" >"$log" 2>&1; then
		skip_reason="Debian's kernel $1 cannot be unpacked: $(tail -1 "$log")"
		rm -rf "$dir"/linux-*.deb "$dir"/tree.*
		return 1
	fi
	echo "$stamp" >"$dir/stamp"
}

# kernel_program NAME: its file for the guest.
kernel_program() {
	local dir
	for dir in bin sbin usr/bin usr/sbin; do
		[ ! -x "$VM_ROOT/$dir/$1" ] || { echo "$VM_ROOT/$dir/$1"; return; }
	done
	return 1
}

# kernel_libraries FILE...: the files that the loader loads with these, by their names in the guest.
kernel_libraries() {
	local file
	for file; do
		if [ -n "$VM_ROOT" ]; then
			$VM_LOADER --list "$file" | sed "s#$VM_ROOT##"
		else
			ldd "$file"
		fi
	done 2>/dev/null | sed -nE 's#^[[:space:]](.* => )?(/[^ ]+) .*#\2#p' | sort -u
}

kernel_overlay() {
	local root file lib providers=()
	root=$WORK/overlay.$RANDOM
	VM_OVERLAY=$root.cpio
	mkdir -p "$root/bin" "$root/usr/lib" "$root/lib64"
	# our library and command, where no other program sees them
	for file in "${VM_OURS[@]}"; do
		lib=$root/xroce/$(basename "$(dirname "$file")")
		mkdir -p "$lib" && cp -L "$file" "$lib/" || return
	done
	for file; do
		cp -L "$file" "$root/bin/" || return
	done
	[ -n "$VM_ROOT" ] || providers=(/usr/lib/$VM_TRIPLET/libibverbs/librxe-*.so)
	# a provider is loaded by name, and pthread_exit() loads libgcc_s: the loader shows neither
	for lib in "${providers[@]}" /lib/$VM_TRIPLET/libgcc_s.so.1 \
		$(kernel_libraries "$@" "${VM_OURS[@]}" "${providers[@]}"); do
		mkdir -p "$root/${lib%/*}" && cp -L "$VM_ROOT$lib" "$root/$lib" || return
	done
	(cd "$root" && find . | cpio --quiet -o -H newc) >"$VM_OVERLAY" && rm -rf "$root"
}
