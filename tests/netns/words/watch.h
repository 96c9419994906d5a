/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks memory after each instruction of a thread (by the trap flag; SIGTRAP), or all the time
 * from a separate thread. One watch a process.
 */
#ifndef NETNS_WORDS_WATCH_H
#define NETNS_WORDS_WATCH_H

#include "job.h"

/* Whether steps can be taken on this processor, and are wanted. Without them a thread looks. */
void watch_install(bool steps);
/*
 * From here on the job's words are watched, or changed (is_moving), in that memory: of an atomic
 * the word at the offset of `from` is added to. Until watch_end(), which returns the first fault or
 * NULL.
 */
void watch_begin(const struct job *j, uint8_t *memory);
const char *watch_end(void);
/* What the watch has added to the word of an atomic. */
uint64_t watch_added(void);
/* Times that it looked, and found a message half placed. */
void watch_counts(uint64_t *looks, uint64_t *halves);
/* The calling thread is watched between the two. */
void watch_me(void);
void watch_me_no_more(void);

#endif
