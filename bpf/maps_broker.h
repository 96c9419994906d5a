/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of the broker's programs, see xroce/abi.h. No client gets any of them. */
#ifndef BPF_MAPS_BROKER_H
#define BPF_MAPS_BROKER_H

#include "maps_device.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XROCE_MAX_OWNED);
	__type(key, __u32);
	__type(value, struct xroce_owner);
} xroce_owner SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XROCE_MAX_CLIENT + 1);
	__type(key, __u32);
	__type(value, struct xroce_cm_client);
} xroce_cm_client SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XROCE_MAX_SERVICE);
	__type(key, struct xroce_service_key);
	__type(value, struct xroce_service);
} xroce_service SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XROCE_MAX_ASKED);
	__type(key, struct xroce_asked_key);
	__type(value, struct xroce_asked);
} xroce_asked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, XROCE_MAX_CONN);
	__type(key, __u32);
	__type(value, struct xroce_conn);
} xroce_conn SEC(".maps");

/* MADs for the broker, as struct xroce_rx_record. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, XROCE_UNOWNED_BYTES);
} xroce_unowned SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, XROCE_MAX_CLIENT);
	__type(key, __u32);
	__type(value, __u32);
} xroce_client SEC(".maps");

/* Holds xroce_egress until the broker exits: then the kernel empties the PROG_ARRAY. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xroce_alive SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_wire);
} xroce_wire SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XROCE_MAX_NEIGHBOUR);
	__type(key, struct xroce_gid_key);
	__type(value, struct xroce_neighbour);
} xroce_neighbour SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XROCE_MAX_TAP);
	__type(key, __u32);
	__type(value, struct xroce_tap);
} xroce_tap SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XROCE_MAX_PKEY);
	__type(key, __u32);
	__type(value, __u32);
} xroce_pkey SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_refused);
} xroce_refused SEC(".maps");

#endif
