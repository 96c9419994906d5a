/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that outlives the program which `xroce run` becomes, or a broker. It has none of their
 * descriptors and is in a session of its own, so that the terminal does not notice it, and is no
 * child of the program, so that this does not either. It runs no program of its own: it is this
 * one, forked.
 */
#ifndef RUN_DAEMONIZE_H
#define RUN_DAEMONIZE_H

#include "../../engine/types.h"

#define DAEMONIZE_ALL_CAPS (~0ull)

/*
 * Forks it; there it calls work(arg), by whose return it ends. Of its descriptors it keeps the n of
 * keep[], and the standard ones are /dev/null. name: what ps(1) shows. It keeps the capabilities
 * caps, a bit each, and in a user namespace of the user's none. Returns 0; -ECHILD: it would be a
 * child of the program, which adopts orphans (the first process of a PID namespace, or a
 * subreaper), or stay as a zombie, as the first process waits for none (adopter.h); or -errno.
 */
int daemonize(const char *name, u64 caps, void (*work)(void *arg), void *arg, const int *keep,
	      u32 n);
/*
 * The same with all capabilities, but a child of the caller's, which may have some. Returns its pid
 * or -errno.
 */
int daemonize_as_child(const char *name, void (*work)(void *arg), void *arg, const int *keep,
		       u32 n);

#endif
