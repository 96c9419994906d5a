#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tier: core
#
# Compares the exports of the library with exports.tsv: the public exports of rdma-core, those of
# the private nodes of 33 to 65, and then the symbols that our librdmacm uses. Each symbol has its
# version node and type, and there is no other. Also checks the soname and the needed libraries.
# exports.sh BUILD
set -u

here=$(cd "$(dirname "$0")" && pwd) || exit 1
lib=${1:?usage: exports.sh BUILD}/lib/libibverbs.so.1
table=$here/exports.tsv nodes='IBVERBS|XROCE'
. "$here/../common/exports.sh" || exit 1

check exports__are_those_of_the_table same_symbols
check exports__each_with_bad_arguments named_in "$here/man_arguments.c"
check exports__count count_is $((94 + 469 + 11))
check exports__none_without_a_version nothing_unversioned
check exports__soname soname_is libibverbs.so.1
check exports__link_for_dlopen development_link
# Built with -fstack-protector-strong, and with the C library's calls that know the size of their
# buffer.
check hardening__stack_protector uses __stack_chk_fail
check hardening__fortified_calls uses __snprintf_chk
exit $failed
