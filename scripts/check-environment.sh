#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What runs with more privileges than its caller takes nothing from the caller's environment: the
# libraries, the broker and the services read it by secure_getenv(3). The other commands are the
# caller's own. Prints each violation.
#
# check-environment.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

files=$(ls user/*/*.[ch] user/tools/{serve,export}/*.[ch] | grep -v '^user/tools/[a-z]*\.')
if grep -nE '(^|[^a-z_])getenv\(' $files; then
	echo "check-environment: secure_getenv(3) is required there" >&2
	exit 1
fi
echo "$(wc -w <<<"$files") files looked at"
