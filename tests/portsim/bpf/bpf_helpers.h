/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In place of libbpf's header of this name: what makes the receiving XDP program a function of this
 * machine's (xdp.c). Maps are names only.
 */
#ifndef PORTSIM_BPF_HELPERS_H
#define PORTSIM_BPF_HELPERS_H

#include <linux/bpf.h>
#include <stddef.h>

#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  typeof(val) *name
#define __array(name, val) typeof(val) *name[]
#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define barrier_var(var)   __asm__ volatile("" : "+r"(var))

void *xdp_map_lookup(const void *map, const void *key);
/* user space has a function of this name as well */
#define bpf_map_lookup_elem(map, key) xdp_map_lookup(map, key)
/* only clients of a broker call others' programs */
static inline long bpf_tail_call(struct xdp_md *ctx, void *programs, __u32 index)
{
	return -1;
}
long bpf_redirect_map(const void *map, __u64 key, __u64 flags);
long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);
void *bpf_ringbuf_reserve(const void *ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *record, __u64 flags);
void bpf_ringbuf_discard(void *record, __u64 flags);
long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 len);
long bpf_xdp_adjust_meta(struct xdp_md *ctx, int delta);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
__u64 bpf_ktime_get_ns(void);
long bpf_loop(__u32 n, void *fn, void *arg, __u64 flags);

#endif
