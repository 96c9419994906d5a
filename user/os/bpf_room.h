/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors for libbpf. Libbpf asks the kernel what it can do and keeps each answer for the rest
 * of the process. A question that finds no descriptor is kept as "cannot", and later loads fail
 * with EINVAL, however many descriptors there are by then. So nothing is loaded without room.
 */
#ifndef XROCE_OS_BPF_ROOM_H
#define XROCE_OS_BPF_ROOM_H

struct bpf_object;

/* Checks that loading obj finds descriptors for its maps, programs and questions. 0 or -errno. */
int bpf_room(const struct bpf_object *obj);

#endif
