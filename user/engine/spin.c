/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The spin lock; see spin.h. */
#include "spin.h"

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void spin_lock(struct spin *s)
{
	while (!spin_try(s))
		while (atomic_load_explicit(&s->taken, memory_order_relaxed))
			pause_briefly();
}
