#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# An errno is positive where manual pages have it (user/verbs, rsockets); elsewhere it is negative
# (docs/port.md, "What a call may return"). Finds errors that are returned or kept without a minus;
# what errno itself is compared with is no answer.
#
# check-errno.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1
names='E(PERM|NOENT|INTR|IO|AGAIN|NOMEM|ACCES|FAULT|BUSY|EXIST|NODEV|INVAL|NOSPC|RANGE|NOBUFS|NODATA|OPNOTSUPP|HOSTUNREACH|NETUNREACH)'

files=()
for f in user/*/*.[ch] user/*/*/*.[ch]; do
	case $f in
	user/tools/bench/* | user/tools/export/*) files+=("$f") ;;
	user/verbs/* | user/tools/* | user/rspreload/* | user/rsocket/*) ;;
	*) files+=("$f") ;;
	esac
done
if grep -nE "(return|[^=!<>]=|[?:]) *(errno|$names)( *[;:,)]|$)" "${files[@]}" |
	grep -vE 'const int saved = errno;|case E|:[[:space:]]*/?\*'; then
	echo "check-errno: positive below the verbs" >&2
	exit 1
fi
echo "${#files[@]} files looked at"
