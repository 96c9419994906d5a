/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork(): a process keeps the objects that it made. In the child, every context and object is an
 * inert copy: the device is gone for it (EIO), at once, whatever the parent's threads were doing.
 * The child cannot affect the parent: descriptors that both would share are replaced. port/port.c
 * releases the port.
 *
 * Only the forking thread continues in the child, so locks are initialized again. Their data is
 * consistent because the locks are held across the fork (lists_lock here, the engines' in port/),
 * or it is discarded.
 */
#include "objects.h"

pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vlist entries;

void fork_add(struct fork_entry *entry, fork_fn *in_child)
{
	entry->in_child = in_child;
	vlist_add(&entries, &entry->listed);
}

void fork_remove(struct fork_entry *entry)
{
	vlist_remove(&entries, &entry->listed);
}

static void fork_prepare(void)
{
	pthread_mutex_lock(&lists_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lists_lock);
}

static void fork_child(void)
{
	for (struct vlink *n = entries.first; n; n = n->next) {
		struct fork_entry *entry = container_of(n, struct fork_entry, listed);

		entry->in_child(entry);
	}
	pthread_mutex_init(&lists_lock, NULL);
}

__attribute__((constructor)) static void fork_register(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}
