/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that outlives the program started by `xroce run`, or assists a broker. It has none of
 * their descriptors. A new session hides it from the terminal. It is no child of the program, which
 * thus does not notice it. It is a fork of this process and executes no program.
 */
#ifndef RUN_DAEMONIZE_H
#define RUN_DAEMONIZE_H

#include "../../engine/types.h"

#define DAEMONIZE_ALL_CAPS (~0ull)

/*
 * Forks a process that calls work(arg) and then exits. It keeps the n descriptors of keep[]; the
 * standard ones are /dev/null. name: shown by ps(1). caps: capabilities to keep, a bitmap; none in
 * a user namespace of the user. Returns 0, -errno, or -ECHILD in two cases. The program would adopt
 * the process, as the first process of a PID namespace or a subreaper. Or the process would become
 * a zombie, as the first process does not wait (adopter_reaps()).
 */
int daemonize(const char *name, u64 caps, void (*work)(void *arg), void *arg, const int *keep,
	      u32 n);
/* The same with all capabilities, as a child of the caller. Returns its PID or -errno. */
int daemonize_as_child(const char *name, void (*work)(void *arg), void *arg, const int *keep,
		       u32 n);

/*
 * Gives this process that name (ps(1)), /dev/null as its only descriptors, and / as its directory,
 * as far as that is possible.
 */
void daemonize_leave(const char *name);

/*
 * Returns whether processes that outlive the program would be zombies, in a PID namespace that has
 * another first process, and whose /proc is visible. daemonize_has_adopter(): no longer, as the
 * parent of this process adopts them.
 */
bool daemonize_lacks_adopter(void);
void daemonize_has_adopter(void);

/*
 * The first process of a PID namespace, which adopts orphans. An init waits for each. In a
 * container it may be a program that does not. A process that outlives the command then remains a
 * zombie until the namespace ends. adopter_reaps() judges by /proc/1, as no other interface tells.
 */

/* This number of our zombies proves that the first process does not wait for children. */
#define ADOPTER_DEAD_MAX 64

/*
 * Judge by /proc/1/status, and by /proc/1/stat from the state on. True if SIGCHLD is ignored, so
 * that the kernel reaps children; if it is blocked, as by an init with sigwait; or if the process
 * has waited for a child before. False if unknown.
 */
bool adopter_status_reaps(const char *status);
bool adopter_stat_reaps(const char *stat);

/* For this PID namespace. False also if /proc/1 is not visible, or at ADOPTER_DEAD_MAX. */
bool adopter_reaps(void);

#endif
