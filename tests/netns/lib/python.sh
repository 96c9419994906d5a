# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests that ask Python often: python3 is the interpreter itself. A wrapper script that looks
# for it (pyenv's, say) takes several times as long as the question. Sourced after case.sh.

python3_=$(command -v python3) && read -r -N 2 magic_ <"$python3_" && [ "$magic_" = '#!' ] &&
	PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH
