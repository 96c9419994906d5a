/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Maps of both the receiving program and the broker's: the device's addresses, and counters. */
#ifndef BPF_MAPS_DEVICE_H
#define BPF_MAPS_DEVICE_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_engine);
} xroce_engine SEC(".maps");

/* The value is the GID's index in the device's table, for a dump; only presence counts here. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XROCE_MAX_GID);
	__type(key, struct xroce_gid_key);
	__type(value, __u32);
} xroce_gid SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_drops);
} xroce_drop SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_rx_stats);
} xroce_rx SEC(".maps");

#endif
