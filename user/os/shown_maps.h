/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of a process that are meant for reading: `xroce qp` and similar commands read them, and
 * a broker passes them to the process's own user. Excluded: maps that processes share (xroce_turn,
 * xroce_others), and maps by which frames arrive.
 */
#ifndef OS_SHOWN_MAPS_H
#define OS_SHOWN_MAPS_H

#include <stdbool.h>
#include <string.h>

#include <xroce/abi.h>

static inline bool shown_map_is(const char *name)
{
	static const char *const shown[] = {
		XROCE_MAP_QP,	XROCE_MAP_CQ,	 XROCE_MAP_VECTOR,     XROCE_MAP_ENGINE,
		XROCE_MAP_GID,	XROCE_MAP_GROUP, XROCE_MAP_FLOW_COUNT, XROCE_MAP_DROP,
		XROCE_MAP_RX,	XROCE_MAP_SOCK,	 XROCE_MAP_ENGINE_STAT, XROCE_MAP_ENGINE_DROP,
		"xroce_qp_stat", "xroce_cq_stat", "xroce_srq_stat",     "xroce_mr_stat",
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(name, shown[i]))
			return true;
	return false;
}

/* A broker's maps with its settings and counters, and none that packets are steered by. */
static inline bool shown_map_is_brokers(const char *name)
{
	static const char *const shown[] = {
		XROCE_MAP_OWNER,   XROCE_MAP_RX,   XROCE_MAP_DROP,    XROCE_MAP_REFUSED,
		XROCE_MAP_TAP,	   XROCE_MAP_PKEY, XROCE_MAP_SERVICE, XROCE_MAP_MEMBERS,
		XROCE_MAP_ENGINE, XROCE_MAP_GID,
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (!strcmp(name, shown[i]))
			return true;
	return false;
}

#endif
