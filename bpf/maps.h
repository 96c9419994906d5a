/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of the receiving program, with the names and types of xroce/abi.h. Each struct there
 * documents its writers and readers.
 */
#ifndef BPF_MAPS_H
#define BPF_MAPS_H

#include <xroce/stat.h>

#include "maps_device.h"

/* The sockets: XROCE_MAX_QUEUE slots for each owner, one a receive queue. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, XROCE_MAX_OWNER * XROCE_MAX_QUEUE);
	__type(key, __u32);
	__type(value, __u32);
} xroce_xsk SEC(".maps");

/*
 * The ring for packets that go to no socket (deliver.h). The broker sets its size before it loads
 * the program.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, XROCE_RING_BYTES);
} xroce_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_QP);
	__type(key, __u32);
	__type(value, struct xroce_qp);
} xroce_qp SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_CQ);
	__type(key, __u32);
	__type(value, struct xroce_cq);
} xroce_cq SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_QP);
	__type(key, __u32);
	__type(value, struct xroce_expect);
} xroce_expect SEC(".maps");

/* A broker's client: the broker's xroce_client, inserted before the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} xroce_others SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XROCE_MAX_GROUP);
	__type(key, struct xroce_gid_key);
	__type(value, struct xroce_group);
} xroce_group SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xroce_flows);
} xroce_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2 * XROCE_MAX_FLOW);
	__type(key, __u32);
	__type(value, struct xroce_flow);
} xroce_flow SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XROCE_MAX_COUNTER);
	__type(key, __u32);
	__type(value, struct xroce_flow_count);
} xroce_flow_cnt SEC(".maps");

/* The ring for copies of frames (sniff.h); empty until the process has flows with copies. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, XROCE_RING_BYTES);
	});
} xroce_copies SEC(".maps");

/* The wake-up rings, inserted by user space. Their sizes may differ from the prototype's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XROCE_MAX_CHANNEL);
	__type(key, __u32);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_RINGBUF);
		__uint(max_entries, XROCE_RING_BYTES);
	});
} xroce_channel SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_QUEUE);
	__type(key, __u32);
	__type(value, struct xroce_vector);
} xroce_vector SEC(".maps");

/*
 * The library's own counters. This program does not use them; they are here so that `bpftool map
 * dump` shows their field names.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_QUEUE);
	__type(key, __u32);
	__type(value, struct xroce_sock);
} xroce_sock SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_SHARD);
	__type(key, __u32);
	__type(value, struct xroce_engine_stats);
} xroce_eng_stat SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MAX_SHARD);
	__type(key, __u32);
	__type(value, struct xroce_drops);
} xroce_eng_drop SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_QP_STATS);
	__type(key, __u32);
	__type(value, struct xroce_qp_stat);
} xroce_qp_stat SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_CQ_STATS);
	__type(key, __u32);
	__type(value, struct xroce_cq_stat);
} xroce_cq_stat SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_SRQ_STATS);
	__type(key, __u32);
	__type(value, struct xroce_srq_stat);
} xroce_srq_stat SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XROCE_MR_STATS);
	__type(key, __u32);
	__type(value, struct xroce_mr_stat);
} xroce_mr_stat SEC(".maps");

#endif
