/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What observers of a client are given: descriptors by which its maps can be read and not written,
 * and the maps by which it is traced. The broker opens them before the client has any, and holds
 * them for the client's life: the client can neither close nor replace nor freeze them.
 */
#ifndef BROKER_SHOWN_H
#define BROKER_SHOWN_H

#include <bpf/libbpf.h>

#include "../attach/place.h"

#define SHOWN_MAPS 16 /* of os/shown_maps.h */

struct shown {
	int fd[SHOWN_MAPS]; /* to read; the first num */
	u32 num;
	int err;	    /* 0, or the -errno for observers: the maps cannot be opened */
	struct place_maps place;
	/*
	 * The arming word of tracers, mapped for writing. The kernel refuses BPF_MAP_FREEZE for a
	 * map with such a mapping; tracers could not map a frozen map.
	 */
	struct xroce_engine *engine;
};

extern const struct shown shown_none;

/*
 * Opens the maps of an object that is loaded. Returns 0 or -errno; without the right to open them
 * for reading 0, and s->err is -errno. shown_close() ends both.
 */
int shown_open(struct shown *s, const struct bpf_object *object);
/* The same for a program of another process. */
int shown_open_program(struct shown *s, u32 prog_id);
/* Closes all; nothing happens the second time. */
void shown_close(struct shown *s);

#endif
