/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parent of a program whose orphans no process would wait for. In a container the first process
 * may wait for no child; each broker that the program starts would then stay as a zombie
 * when it ends. `xroce run` therefore stays there as the program's parent, and adopts its orphans.
 */
#ifndef RUN_REAPER_H
#define RUN_REAPER_H

/*
 * Forks if the first process of this PID namespace does not wait for orphans, and is not this one.
 * Returns in the child, or without a child in this process. A failure is no error: the program then
 * runs in this process. The parent
 *
 * - passes on signals that processes send to it; a terminal's signals reach the program anyway
 * - keeps no descriptor, and kills the program if it is killed itself
 * - exits as the program did, after our processes that the program has left have ended, or 3 s
 */
void reaper_fork(void);

/*
 * In the child, just before it executes the program: the kernel kills the program when the parent
 * ends. A new user namespace would undo this.
 */
void reaper_bind(void);

#endif
