/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that a program starts, and that serves other processes too or outlives the program. It
 * inherits what the user has set for the program alone: chrt(1), taskset(1), ulimit, nice(1).
 */
#ifndef OS_INHERITED_H
#define OS_INHERITED_H

/*
 * Resets the calling thread, the only one of its process, as far as the kernel permits:
 *
 * - policy SCHED_OTHER, nice 0, the default I/O priority: a program that spins at a real-time
 *   priority would starve a process of the same priority, and a process at a program's low priority
 *   would delay all clients
 * - all CPUs and memory nodes that the control group allows
 * - the kernel's default timer slack
 * - no limit of CPU time and memory, or the hard limits
 * - a positive oom_score_adj becomes 0; a negative one stays, as the program needs the process
 * - umask 022
 *
 * Other limits, the control group, namespaces, a seccomp filter and capabilities remain. Errors are
 * ignored: without a privilege nice and SCHED_IDLE can only be made worse.
 */
void inherited_reset(void);

#endif
