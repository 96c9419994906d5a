# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sets up programs of a build with sanitizers, BUILD-san or BUILD-tsan: their options, and in the
# array `sanitized` the words before each program. Needs $BUILD and $WORK.

sanitized=()
case ${BUILD:?} in
*-san)
	# The library has its own handler of SIGSEGV (docs/memory.md).
	export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}:handle_segv=0:allow_user_segv_handler=1"
	;;
*-tsan)
	# TSan does not see that the library closes descriptors by the system call itself: the next
	# descriptor of that number looks like the one before. It needs the address space without
	# the 32 random bits.
	printf 'race:%s\n' kernel_event_make kernel_set_make >"${WORK:?}/suppressions"
	export TSAN_OPTIONS="${TSAN_OPTIONS:-exitcode=66}:suppressions=$WORK/suppressions:print_suppressions=0"
	sanitized=(setarch -R)
	;;
esac
