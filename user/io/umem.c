/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ownership of the UMEM's frames; umem.h draws the states and transitions. This file knows nothing
 * about rings, and makes no system call after umem_create().
 */
#define _GNU_SOURCE
#include "umem.h"

#include <stdlib.h>

#include "../os/kernel.h"

static int allocate_lists(struct umem *u)
{
	u->rx_owner = calloc(u->rx_frames, sizeof(*u->rx_owner));
	u->tx_owner = calloc(u->tx_slots, sizeof(*u->tx_owner));
	u->tx_pending = calloc(u->tx_slots, sizeof(*u->tx_pending));
	u->rx_free = calloc(u->rx_frames, sizeof(*u->rx_free));
	u->tx_free = calloc(u->tx_slots, sizeof(*u->tx_free));
	if (!u->rx_owner || !u->tx_owner || !u->tx_pending || !u->rx_free || !u->tx_free)
		return -ENOMEM;

	for (u32 i = 0; i < u->rx_frames; i++)
		u->rx_free[i] = u->rx_frames - 1 - i;
	for (u32 i = 0; i < u->tx_slots; i++)
		u->tx_free[i] = u->tx_slots - 1 - i;
	u->rx_free_count = u->rx_frames;
	u->tx_free_count = u->tx_slots;
	return 0;
}

int umem_create(struct umem *u, u32 rx_frames, u32 tx_slots)
{
	int err;

	*u = (struct umem){
		.rx_frames = rx_frames,
		.tx_slots = tx_slots,
		.bytes = (u64)rx_frames * UMEM_CHUNK + (u64)tx_slots * UMEM_TX_SLOT_BYTES,
	};
	err = allocate_lists(u);
	if (err)
		goto fail;

	u->area = kernel_memory_make(u->bytes);
	err = u->area ? 0 : -errno;
	if (err)
		goto fail;
	return 0;

fail:
	umem_destroy(u);
	return err;
}

void umem_destroy(struct umem *u)
{
	kernel_memory_free(u->area, u->bytes);
	free(u->rx_owner);
	free(u->tx_owner);
	free(u->tx_pending);
	free(u->rx_free);
	free(u->tx_free);
	*u = (struct umem){ 0 };
}

u64 umem_rx_take(struct umem *u)
{
	u32 frame;

	if (u->rx_free_count == 0)
		return UMEM_NONE;
	frame = u->rx_free[--u->rx_free_count];
	u->rx_owner[frame] = UMEM_FILL;
	return (u64)frame * UMEM_CHUNK;
}

u8 *umem_rx_received(struct umem *u, u64 addr, u32 len)
{
	u64 frame = addr / UMEM_CHUNK;

	if (frame >= u->rx_frames || u->rx_owner[frame] != UMEM_FILL ||
	    len > UMEM_CHUNK - addr % UMEM_CHUNK)
		return NULL;
	u->rx_owner[frame] = UMEM_HELD;
	return u->area + addr;
}

void umem_rx_release(struct umem *u, u64 addr)
{
	u32 frame = (u32)(addr / UMEM_CHUNK);

	u->rx_owner[frame] = UMEM_FREE;
	u->rx_free[u->rx_free_count++] = frame;
}

static u64 tx_base(const struct umem *u)
{
	return (u64)u->rx_frames * UMEM_CHUNK;
}

static u32 tx_slot_of(const struct umem *u, const u8 *frame)
{
	return (u32)(((u64)(frame - u->area) - tx_base(u)) / UMEM_TX_SLOT_BYTES);
}

static void tx_free(struct umem *u, u32 slot)
{
	u->tx_owner[slot] = UMEM_FREE;
	u->tx_free[u->tx_free_count++] = slot;
}

u8 *umem_tx_take(struct umem *u)
{
	u32 slot;

	if (u->tx_free_count == 0)
		return NULL;
	slot = u->tx_free[--u->tx_free_count];
	u->tx_owner[slot] = UMEM_HELD;
	return u->area + tx_base(u) + (u64)slot * UMEM_TX_SLOT_BYTES;
}

void umem_tx_release(struct umem *u, u8 *frame)
{
	tx_free(u, tx_slot_of(u, frame));
}

u64 umem_tx_send(struct umem *u, u8 *frame, u32 descriptors)
{
	u32 slot = tx_slot_of(u, frame);

	u->tx_owner[slot] = UMEM_KERNEL;
	u->tx_pending[slot] = (u8)descriptors;
	u->tx_kernel_count++;
	return (u64)(frame - u->area);
}

bool umem_tx_completed(struct umem *u, u64 addr)
{
	u64 slot;

	if (addr < tx_base(u))
		return false;
	slot = (addr - tx_base(u)) / UMEM_TX_SLOT_BYTES;
	if (slot >= u->tx_slots || u->tx_owner[slot] != UMEM_KERNEL)
		return false;
	if (--u->tx_pending[slot] == 0) {
		u->tx_kernel_count--;
		tx_free(u, (u32)slot);
	}
	return true;
}
