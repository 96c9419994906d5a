/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of a client for its observers: read-only descriptors, and the maps to trace it with. The
 * broker opens them before the client has any, and holds them as long as the client lives: the
 * client can neither close nor replace nor freeze them.
 */
#ifndef BROKER_READONLY_MAPS_H
#define BROKER_READONLY_MAPS_H

#include <bpf/libbpf.h>

#include "trace_slot.h"

#define READONLY_MAPS_MAPS 16 /* of os/xdp_maps.h */

struct readonly_maps {
	int fd[READONLY_MAPS_MAPS]; /* read-only; the first num are open */
	u32 num;
	int err;	    /* 0, or the -errno for observers: a map cannot be opened */
	struct trace_slot_maps slot;
	/*
	 * The arming word of tracers, mapped for writing. The kernel refuses BPF_MAP_FREEZE for a
	 * map with such a mapping; tracers could not map a frozen map.
	 */
	struct xroce_engine *engine;
};

extern const struct readonly_maps readonly_maps_none;

/*
 * Opens the maps of a loaded object. Returns 0 or -errno. If maps cannot be opened for reading,
 * returns 0 with s->err -errno; readonly_maps_close() closes the others.
 */
int readonly_maps_open(struct readonly_maps *s, const struct bpf_object *object);
/* Closes all. A second call has no effect. */
void readonly_maps_close(struct readonly_maps *s);

#endif
