#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# What librdmacm.so.1 exports against exports.tsv, which was taken from rdma-core 65's: every symbol
# under its version node, nothing else but what librspreload.so calls; its name, and that it runs
# on our libibverbs.so.1.
# exports.sh BUILD
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
lib=${1:?usage: exports.sh BUILD}/lib/librdmacm.so.1
table=$here/exports.tsv nodes='RDMACM|XROCE'
. "$here/../common/exports.sh" || exit 1

check exports__are_those_of_the_table same_symbols
check exports__each_with_bad_arguments named_in "$here/man_arguments.c"
check exports__count count_is 78
check exports__none_without_a_version nothing_unversioned
check exports__soname soname_is librdmacm.so.1
check exports__link_for_the_linker development_link
check exports__needs_libibverbs needs libibverbs.so.1
check exports__needs_no_xdp needs_no libxdp.so.1
exit $failed
