/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Number of QPs of each engine that use an object which the device's engines share. Changes with
 * all engines held.
 */
#ifndef ENGINE_USERS_H
#define ENGINE_USERS_H

#include "types.h"

struct users {
	_Atomic u32 engines; /* engines with QPs, one bit per number; any thread, as a hint */
	u32 count[ENGINE_MAX];
};

static inline u32 users_engines(const struct users *u)
{
	return atomic_load_explicit(&((struct users *)u)->engines, memory_order_relaxed);
}

/* Both return whether several engines now have QPs. */
static inline bool users_add(struct users *u, u32 engine)
{
	u32 engines = users_engines(u) | 1u << engine;

	u->count[engine]++;
	atomic_store_explicit(&u->engines, engines, memory_order_relaxed);
	return engines & (engines - 1);
}

static inline bool users_remove(struct users *u, u32 engine)
{
	u32 engines = users_engines(u);

	if (!--u->count[engine])
		engines &= ~(1u << engine);
	atomic_store_explicit(&u->engines, engines, memory_order_relaxed);
	return engines & (engines - 1);
}

#endif
