/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Takes over the terminal for frames and keys, and restores it: at the end, on signals, while the
 * process is stopped (^Z), and on a crash. One per process.
 */
#ifndef TOP_FULL_SCREEN_H
#define TOP_FULL_SCREEN_H

#include "../../engine/types.h"

/* Returns whether standard input and output are a terminal that can move the cursor. */
bool full_screen_can(void);
/* Sets the locale; returns whether the terminal's characters are UTF-8. */
bool full_screen_has_blocks(void);

/*
 * Takes the terminal, and SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT and SIGWINCH. Returns
 * 0 or -errno.
 */
int full_screen_begin(void);
void full_screen_end(void); /* also called at exit(); idempotent */

enum full_screen_event {
	FULL_SCREEN_KEYS = 1,  /* full_screen_read() is due */
	/* a frame is due: resized, taken again, or ready for output again */
	FULL_SCREEN_SHOW = 2,
	FULL_SCREEN_ENDED = 4, /* by a signal, or the terminal is closed */
};
/*
 * Waits until until_ns at most (CLOCK_MONOTONIC) and sends the rest of the last frame. Returns enum
 * full_screen_event bits, 0 on timeout.
 */
u32 full_screen_wait(u64 until_ns);
u32 full_screen_read(u8 *bytes, u32 size);
void full_screen_size(u32 *columns, u32 *lines);
/* Writes the frame at once; skips it while an older frame waits. */
void full_screen_show(const char *bytes, size_t len);

#endif
