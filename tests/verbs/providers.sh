#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Loads a stand-in for a provider library (libmlx5, libefa) of each private node of rdma-core: a
# shared object that imports every symbol of the node by version, bound at load time, and
# registers itself in a constructor. exports.tsv has the symbols. A node that this library does not
# have is refused, so the test can fail.
# providers.sh BUILD
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
lib=$(realpath "${1:?usage: providers.sh BUILD}")/lib
table=$here/exports.tsv
work=$(mktemp -d) || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
cc=${CC:-cc}
. "$here/../common/exports.sh" || exit 1

nodes() { cut -f2 "$table" | grep -oP '^IBVERBS_PRIVATE_\K\d+' | sort -un; }
symbols_of() { awk -F'\t' -v node="IBVERBS_PRIVATE_$1" '$2 == node { print $1 }' "$table"; }

# provider NODE: the source of a provider that imports the symbols of NODE.
provider() {
	echo 'void verbs_register_driver_'"$1"'(const void *ops);'
	symbols_of "$1" | grep -v '^verbs_register_driver_' | sed 's/.*/extern char &[];/'
	symbols_of "$1" |
		sed 's/.*/__asm__(".symver &, &@IBVERBS_PRIVATE_'"$1"'");/'
	echo 'void *const imports[] = {'
	symbols_of "$1" | sed 's/.*/	(void *)&,/'
	cat <<-END
		};
		const unsigned int num_imports = sizeof(imports) / sizeof(*imports);
		__attribute__((constructor)) static void start(void)
		{
			verbs_register_driver_$1(0);
		}
	END
}

# The loader: prints how many symbols the provider imports, and ENOSYS of a call by its node.
cat >"$work/load.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *provider = dlopen(argv[1], RTLD_NOW);
	int (*command)(void);
	void *const *imports;
	unsigned int num, found = 0;

	if (!provider) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	imports = dlsym(provider, "imports");
	num = *(unsigned int *)dlsym(provider, "num_imports");
	for (unsigned int i = 0; i < num; i++)
		found += imports[i] != NULL;
	command = dlvsym(RTLD_DEFAULT, "ibv_cmd_get_context", argv[2]);
	if (!command)
		command = dlvsym(provider, "ibv_cmd_get_context", argv[2]);
	printf("%u %d\n", found, command ? command() : -1);
	return 0;
}
END
$cc -o "$work/load" "$work/load.c" -ldl || exit 1

# build_provider NODE: its shared object. Undefined symbols are an error when it is loaded.
build_provider() {
	provider "$1" >"$work/provider_$1.c" &&
		$cc -w -fno-builtin -shared -fPIC -Wl,-z,now -o "$work/provider_$1.so" \
			"$work/provider_$1.c" "$lib/libibverbs.so.1"
}
loads() {
	local want
	want="$(symbols_of "$1" | wc -l) 38" # ENOSYS
	build_provider "$1" &&
		[ "$(LD_LIBRARY_PATH=$lib "$work/load" "$work/provider_$1.so" \
			"IBVERBS_PRIVATE_$1")" = "$want" ]
}
# No release has a node 58: rewritten in the object, as the linker refuses it too.
unknown_node_is_refused() {
	build_provider 57 || return 1
	sed -i 's/IBVERBS_PRIVATE_57/IBVERBS_PRIVATE_58/' "$work/provider_57.so"
	! LD_LIBRARY_PATH=$lib "$work/load" "$work/provider_57.so" IBVERBS_PRIVATE_58 \
		2>"$work/refused" && grep -q 'IBVERBS_PRIVATE_58' "$work/refused"
}
# The releases' own numbers of private symbols, verbs_register_driver_N included.
counts() {
	local node
	for node in $(nodes); do
		printf '%s:%s ' "$node" "$(symbols_of "$node" | wc -l)"
	done
}
counts_are() { [ "$(counts)" = "$1" ]; }

check table__counts_of_the_releases counts_are '33:70 34:74 57:73 59:78 64:82 65:92 '
for node in $(nodes); do
	check "node_${node}__provider_loads" loads "$node"
done
check node_58__is_refused unknown_node_is_refused
exit $failed
