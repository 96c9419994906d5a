/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A terminal that is taken for frames and keys, and given back as it was: at the end, by a signal,
 * while the process is stopped (^Z), and if it crashes. The process has one.
 */
#ifndef TOP_FULL_SCREEN_H
#define TOP_FULL_SCREEN_H

#include "../../engine/types.h"

/* Standard input and output are a terminal that has more than lines. */
bool full_screen_can(void);
/* The terminal's characters are UTF-8, by the locale, which is set. */
bool full_screen_has_blocks(void);

/* Takes it, and SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH. Returns 0, -errno. */
int full_screen_begin(void);
void full_screen_end(void); /* also at exit(); it may be called twice */

enum full_screen_event {
	FULL_SCREEN_KEYS = 1,  /* full_screen_read() */
	/* it was resized, or taken again, or takes frames again: one is due */
	FULL_SCREEN_SHOW = 2,
	FULL_SCREEN_ENDED = 4, /* a signal, or the terminal is gone */
};
/* Waits until then at most (CLOCK_MONOTONIC), and sends what is left of the last frame. */
u32 full_screen_wait(u64 until_ns);
u32 full_screen_read(u8 *bytes, u32 size);
void full_screen_size(u32 *columns, u32 *lines);
/* Shows it with one write, if the terminal takes it; while an older one waits it is left out. */
void full_screen_show(const char *bytes, size_t len);

#endif
