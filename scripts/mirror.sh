#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Prints where this machine has Debian's packages from, or what MIRROR says.
[ -n "${MIRROR:-}" ] && echo "$MIRROR" && exit
apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -v security | head -n 1
