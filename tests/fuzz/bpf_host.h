/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's side of the parsers in bpf/ for a build on the host: a frame, of which a program
 * addresses the linear part, and the helpers that read the frame. ASan finds a read after the
 * linear part.
 *
 * Include this first, then define the helpers' names as functions of this file, then include the
 * headers of bpf/.
 */
#ifndef TESTS_FUZZ_BPF_HOST_H
#define TESTS_FUZZ_BPF_HOST_H

#include "../../user/engine/gso.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include "fuzz.h"

#define HOST_FRAME_MAX 66000u
#define HOST_ROOM      (96u << 10)

struct host_frame {
	u8 *room; /* below 4 GiB: a context has 32 bits for an address */
	const u8 *bytes;
	u32 len, linear;
};
static struct host_frame host_frame;

static inline void host_open(void)
{
	void *const low = (void *)0x10000000ul;

	host_frame.room = mmap(low, HOST_ROOM, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(host_frame.room != MAP_FAILED);
	REQUIRE((uintptr_t)host_frame.room + HOST_ROOM <= UINT32_MAX);
}

/* Makes the first `linear` bytes addressable. */
static inline void host_show(u32 linear)
{
	ASAN_UNPOISON_MEMORY_REGION(host_frame.room, linear);
	memcpy(host_frame.room, host_frame.bytes, linear);
	ASAN_POISON_MEMORY_REGION(host_frame.room + linear, HOST_ROOM - linear);
	host_frame.linear = linear;
}

/* Sets the frame that is parsed next. The caller keeps bytes until then. */
static inline void host_take(const u8 *bytes, u32 len, u32 linear)
{
	host_frame.bytes = bytes;
	host_frame.len = len;
	host_show(linear);
}

static inline u32 host_data(void)
{
	return (u32)(uintptr_t)host_frame.room;
}

static inline long host_load_bytes(const void *ctx, u32 offset, void *to, u32 len)
{
	if (offset > host_frame.len || len > host_frame.len - offset) {
		memset(to, 0, len);
		return -EFAULT;
	}
	memcpy(to, host_frame.bytes + offset, len);
	return 0;
}

static inline u64 host_frame_len(const void *ctx)
{
	return host_frame.len;
}

/* Repairs of a frame, by which an input passes the first checks. */
enum host_fix {
	HOST_FIX_LENGTHS = 1 << 0, /* of IP and UDP */
	HOST_FIX_PORT = 1 << 1,
	HOST_FIX_SUM = 1 << 2, /* the UDP checksum of a super-packet */
};

static inline u32 host_l3(const u8 *frame, u32 len)
{
	u32 l3 = sizeof(struct ethhdr);

	for (u32 i = 0; i < 2 && l3 < len; i++)
		if (get16(frame + l3 - 2) == ETH_P_8021Q || get16(frame + l3 - 2) == ETH_P_8021AD)
			l3 += 4;
	return l3;
}

static inline void host_fix(u8 *frame, u32 len, u8 fixes)
{
	const u32 l3 = host_l3(frame, len);
	const bool is_ipv6 = l3 < len && frame[l3] >> 4 == 6;
	const u32 l4 = l3 + (is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));

	if (len < l4 + sizeof(struct udphdr))
		return;
	if (fixes & HOST_FIX_PORT)
		put16(frame + l4 + 2, ROCE_UDP_PORT);
	if (fixes & HOST_FIX_LENGTHS) {
		put16(frame + l3 + (is_ipv6 ? 4 : 2), len - (is_ipv6 ? l4 : l3));
		put16(frame + l4 + 4, len - l4);
	}
	if (fixes & HOST_FIX_SUM && !is_ipv6)
		put16(frame + l4 + 6, fold16(sum16(frame + l3 + 12, 8) + IPPROTO_UDP +
					     get16(frame + l4 + 4)));
}

#endif
