/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors for libbpf. Libbpf probes the kernel's features and keeps each result for the rest
 * of the process. A probe that gets no descriptor is kept as "not supported", and all later loads
 * fail with EINVAL, even if more descriptors are free by then. Callers therefore check first.
 */
#ifndef OS_BPF_ROOM_H
#define OS_BPF_ROOM_H

struct bpf_object;
struct bpf_object_skeleton;

/* Checks that descriptors are free for obj's maps, programs and libbpf's probes. 0 or -errno. */
int bpf_room(const struct bpf_object *obj);
/* Loads an open skeleton, after bpf_room(). 0 or -errno. */
int bpf_load(struct bpf_object_skeleton *skeleton);

#endif
