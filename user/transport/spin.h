/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A spin lock for the few words that several engines of a device share: no system call, held for a handful of instructions, never two at a time. Where only one
 * engine can come, nobody takes it.
 */
#ifndef TRANSPORT_SPIN_H
#define TRANSPORT_SPIN_H

#include "types.h"

struct spin {
	_Atomic u32 taken;
};

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static inline void spin_lock(struct spin *s)
{
	/* acquire: pairs with the release in spin_unlock() */
	while (atomic_exchange_explicit(&s->taken, 1, memory_order_acquire))
		while (atomic_load_explicit(&s->taken, memory_order_relaxed))
			spin_pause();
}

static inline void spin_unlock(struct spin *s)
{
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}

/* The lock of what is shared only at times: whether it is changes while every engine of the device is held, so it is the same at both calls. */
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
