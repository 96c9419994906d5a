/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the engines of a device share, but for their tables: the spin lock, the users of an object,
 * and how the numbers of QPs and SRQs follow each other. owner.c has the tables and doorbells.
 */
#ifndef ENGINE_OWNER_H
#define ENGINE_OWNER_H

#include "types.h"

/*
 * The spin lock. The engines of a device take it around shared data: no system call, held for
 * a handful of instructions or the copy of one packet, never two at a time, and not taken where
 * only one engine can come. Queues of the verbs (verbs/objects.h) yield the CPU while they wait.
 */
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

/*
 * Number of QPs of each engine that use an object which the device's engines share. Changes with
 * all engines held.
 */
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

/*
 * Numbers of QPs and SRQs, 24 bits: the low part is a slot of a table, the rest the slot's
 * generation. Numbers must not be predictable, nor reused while a peer may remember the last QP
 * with the number: its connection manager refuses such a QP until its time-wait ends. So the slot
 * and its first generation are random; each later generation is a random step after the last. A
 * number is reused at the earliest after 16 others of its slot: about 260,000 numbers in a table of
 * 16384 slots.
 */
#define NUMBER_STEPS 64u

/*
 * Returns the next number of a slot. last: 0, if there was none, or the last one's generation + 1;
 * random: at least 24 bits, whose low part may be the slot.
 */
static inline u32 number_of_slot(u32 last, u32 slots, u32 slot, u32 random)
{
	const u32 generations = (ROCE_QPN_MASK + 1) / slots, drawn = random / slots;
	const u32 generation = last ? last + drawn % NUMBER_STEPS : drawn;

	return generation % generations * slots + slot;
}

#endif
