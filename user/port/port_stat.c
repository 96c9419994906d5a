/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Elements of the maps that show what a process has (xroce/stat.h): which of them are taken is
 * known here, and never read from the map, which others may be able to write to.
 */
#include <unistd.h>

#include "../base/clock.h"
#include "port_object.h"

_Static_assert(XROCE_QP_STATS % 64 == 0, "whole words of the set");

/* The first that is free is taken. Returns its number; num: there is none. */
static u32 stat_take_bit(u64 *taken, u32 num)
{
	for (u32 i = 0; i < num / 64; i++)
		if (~taken[i]) {
			const u32 bit = (u32)__builtin_ctzll(~taken[i]);

			taken[i] |= 1ull << bit;
			return i * 64 + bit;
		}
	return num;
}

struct xroce_qp_stat *port_take_qp_stat(struct port *port)
{
	const u32 i = stat_take_bit(port->qp_stats, XROCE_QP_STATS);
	struct xroce_qp_stat *stat;

	if (i == XROCE_QP_STATS)
		return NULL;
	stat = &port->made.maps.qp_stat[i];
	*stat = (struct xroce_qp_stat){ .pid = (u32)getpid(), .made_ns = clock_now_ns() };
	return stat;
}

void port_give_qp_stat(struct port *port, struct xroce_qp_stat *stat)
{
	const u64 i = stat ? (u64)(stat - port->made.maps.qp_stat) : XROCE_QP_STATS;

	if (i >= XROCE_QP_STATS)
		return;
	*stat = (struct xroce_qp_stat){ 0 };
	port->qp_stats[i / 64] &= ~(1ull << i % 64);
}
