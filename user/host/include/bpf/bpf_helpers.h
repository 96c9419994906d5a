/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In place of libbpf's header of this name: what makes the receiving BPF programs functions of this
 * process (user/host/program.c, which has the functions declared here). Their map definitions
 * become names without memory.
 */
#ifndef HOST_BPF_HELPERS_H
#define HOST_BPF_HELPERS_H

#include <linux/bpf.h>
#include <stddef.h>

#define __uint(name, val)  int(*name)[val]
#define __type(name, val)  __typeof__(val) *name
#define __array(name, val) __typeof__(val) *name[]
#define SEC(name)
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define barrier_var(var)   __asm__ volatile("" : "+r"(var))

/* The page of the client whose program runs. */
static inline struct xroce_trace *host_trace_page(void);
#define TRACE_PAGE host_trace_page()

static inline void *host_lookup(const void *map, const void *key);
static inline long host_update(const void *map, const void *key, const void *value);
static inline long host_delete(const void *map, const void *key);
#define bpf_map_lookup_elem(map, key)		      host_lookup(map, key)
#define bpf_map_update_elem(map, key, value, flags) host_update(map, key, value)
#define bpf_map_delete_elem(map, key)		      host_delete(map, key)

/* Clients take turns in host_input_group(), not in the programs. */
static inline long bpf_tail_call(struct xdp_md *ctx, void *programs, __u32 index)
{
	return -1;
}
/* Clients have no AF_XDP sockets. */
static inline long bpf_redirect_map(const void *map, __u64 key, __u64 flags)
{
	return (long)flags;
}
static inline long bpf_xdp_adjust_meta(struct xdp_md *ctx, int delta)
{
	return -1;
}
static inline __u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}
static inline long bpf_xdp_load_bytes(struct xdp_md *ctx, __u32 offset, void *to, __u32 len)
{
	const __u64 all = bpf_xdp_get_buff_len(ctx);

	if (offset > all || len > all - offset)
		return -1;
	__builtin_memcpy(to, (const void *)(ctx->data + offset), len);
	return 0;
}
static inline long bpf_loop(__u32 n, void *fn, void *arg, __u64 flags)
{
	long (*each)(__u64 i, void *arg) = (long (*)(__u64, void *))fn;
	__u32 i = 0;

	while (i < n && !each(i++, arg))
		;
	return i;
}

static inline long bpf_ringbuf_output(void *ring, const void *data, __u64 size, __u64 flags);
static inline void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
static inline void bpf_ringbuf_submit(void *record, __u64 flags);
static inline void bpf_ringbuf_discard(void *record, __u64 flags);
static inline __u64 bpf_ktime_get_ns(void);

#endif
