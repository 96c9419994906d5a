/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What observers of a client are given: descriptors by which its maps can be read and not written,
 * and the maps by which it is traced. The broker opens them before the client has any, and holds
 * them for the client's life: the client can neither close nor replace nor freeze them.
 */
#ifndef BROKER_READONLY_MAPS_H
#define BROKER_READONLY_MAPS_H

#include <bpf/libbpf.h>

#include "../attach/trace_slot.h"

#define READONLY_MAPS_MAPS 16 /* of os/shown_maps.h */

struct readonly_maps {
	int fd[READONLY_MAPS_MAPS]; /* to read; the first num */
	u32 num;
	int err;	    /* 0, or the -errno for observers: the maps cannot be opened */
	struct trace_slot_maps place;
	/*
	 * The arming word of tracers, mapped for writing. The kernel refuses BPF_MAP_FREEZE for a
	 * map with such a mapping; tracers could not map a frozen map.
	 */
	struct xroce_engine *engine;
};

extern const struct readonly_maps shown_none;

/*
 * Opens the maps of an object that is loaded. Returns 0 or -errno; without the right to open them
 * for reading 0, and s->err is -errno. readonly_maps_close() ends both.
 */
int readonly_maps_open(struct readonly_maps *s, const struct bpf_object *object);
/* The same for a program of another process. */
int readonly_maps_open_program(struct readonly_maps *s, u32 prog_id);
/* Closes all; nothing happens the second time. */
void readonly_maps_close(struct readonly_maps *s);

#endif
