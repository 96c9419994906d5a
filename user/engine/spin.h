/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The spin lock. The engines of a device take it around what they share: no system call, held for
 * a handful of instructions or the copy of one packet, never two at a time, and not taken where
 * only one engine can come. Queues of the verbs (verbs/objects.h) yield the CPU while they wait.
 */
#ifndef ENGINE_SPIN_H
#define ENGINE_SPIN_H

#include "types.h"

struct spin {
	_Atomic u32 taken;
};

/* Takes the lock if it is free. */
static inline bool spin_try(struct spin *s)
{
	/* acquire: pairs with the release in spin_unlock() */
	return !atomic_exchange_explicit(&s->taken, 1, memory_order_acquire);
}

static inline void spin_unlock(struct spin *s)
{
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}

/*
 * Never inlined: most devices have one engine, whose code is to stay as short as if there were no
 * other.
 */
void spin_lock(struct spin *s) __attribute__((noinline, cold));

/*
 * Locks an object that may be shared. `shared` changes only with every engine of the device held,
 * so both calls see the same value.
 */
static inline void spin_lock_if(bool shared, struct spin *s)
{
	if (unlikely(shared))
		spin_lock(s);
}

static inline void spin_unlock_if(bool shared, struct spin *s)
{
	if (unlikely(shared))
		spin_unlock(s);
}

#endif
