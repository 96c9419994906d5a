# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sets the options of sanitizers for programs of BUILD-san or BUILD-tsan. A script of the mode tsan
# is started with `setarch -R`: TSan needs the address space without the 32 random bits. Needs
# $BUILD and $WORK.

case ${BUILD:?} in
*-san)
	# The library has its own handler of SIGSEGV (docs/memory.md).
	export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1}:handle_segv=0:allow_user_segv_handler=1"
	;;
*-tsan)
	# TSan does not see that the library closes descriptors by the system call itself: the next
	# descriptor of that number looks like the one before. A program that asks for a broker
	# forks one, by a helper that shares the memory of the process: TSan loses the order of
	# events there, so programs of this build find a broker that serves already.
	printf 'race:%s\n' kernel_event_make kernel_set_make >"${WORK:?}/suppressions"
	export TSAN_OPTIONS="${TSAN_OPTIONS:-exitcode=66}:die_after_fork=0:print_suppressions=0"
	TSAN_OPTIONS+=":suppressions=$WORK/suppressions"
	;;
esac
