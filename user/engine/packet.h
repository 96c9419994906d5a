/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The packet codec: Ethernet frames to struct packet and back. It knows the layout of every header
 * but no queue pairs. Byte order is converted only here. Parsing checks every length before it
 * reads; building writes into memory whose room the caller guarantees.
 */
#ifndef ENGINE_PACKET_H
#define ENGINE_PACKET_H

#include <xroce/abi.h>

#include "guard.h"
#include "types.h"

/*
 * Ethernet 14, two VLAN tags 8, IPv6 40, UDP 8, BTH 12, XRCETH 4, AtomicETH 28 (the longest of its
 * kind): no header is longer.
 */
#define PACKET_HEADER_MAX 128
/* A whole frame: headers, 4096 bytes of payload, pad (none at 4096) and ICRC. */
#define PACKET_FRAME_MAX (PACKET_HEADER_MAX + ROCE_PMTU_MAX + ROCE_ICRC_BYTES)

#define MSN_MASK 0xffffffu

/*
 * Destination of packets: the fields of the Ethernet, IP and UDP headers that are the same in each
 * packet.
 */
struct path {
	u8 dmac[6];
	u8 smac[6];
	u16 vlan_tci;	   /* with has_vlan */
	bool has_vlan;
	bool is_ipv6;
	u8 tos;		   /* IPv4 TOS or IPv6 traffic class */
	u8 hop_limit;	   /* IPv4 TTL or IPv6 hop limit */
	u16 udp_sport;	   /* see path_udp_sport() */
	u32 flow_label;	   /* 20 bits; IPv6 only */
	struct gid local;
	struct gid peer;
};

/* A decoded packet. Fields that the opcode does not carry are 0. Host byte order except imm. */
struct packet {
	u8 opcode;
	u8 pad;		   /* 0..3 */
	u8 tver;
	bool solicited;
	bool migreq;
	bool ackreq;
	bool fecn, becn;
	u16 pkey;
	u32 flags;	   /* OP_* of the opcode */
	u32 dest_qpn;
	u32 psn;

	u64 va;		   /* RETH, AtomicETH */
	u32 rkey;	   /* RETH, AtomicETH */
	u32 dma_len;	   /* RETH */
	u64 swap_add;	   /* AtomicETH: value to swap in or to add */
	u64 compare;
	u64 original;	   /* AtomicAckETH */
	u8 syndrome;	   /* AETH */
	u32 msn;	   /* AETH, 24 bits */
	u32 qkey;	   /* DETH */
	u32 src_qpn;	   /* DETH */
	__be32 imm;	   /* ImmDt, as the application gave it */
	u32 inv_rkey;	   /* IETH */
	u32 xrc_srqn;	   /* XRCETH */
	u32 flush;	   /* FETH */
	u32 credit_cookie; /* probed credits, as the next */
	u32 credit_allowance;

	u32 payload_len;   /* without pad */

	/* set by packet_parse() only */
	bool is_ipv6;
	u8 tos;
	u8 hop_limit;
	u16 ip_id;	   /* IPv4; packet_put_headers() writes it as well */
	u16 udp_sport;
	u16 vlan_tci;	   /* outermost tag, host order */
	bool has_vlan;
	struct gid src;
	struct gid dst;
	const u8 *ip;	   /* the IP header in the frame: where the ICRC starts */
	const u8 *payload; /* in the linear part; may continue in the fragment */
	/* end of the IP packet in the linear part (Ethernet padding is excluded) */
	const u8 *end;
	const u8 *frag;	   /* second buffer of the frame or NULL */
	u32 frag_len;
};

/* A received frame: all headers lie in the linear part; a multi-buffer frame continues in frag. */
struct rx_frame {
	const u8 *data;
	u32 len;
	const u8 *frag;
	u32 frag_len;
};

/* Returns the opcode's row of ROCE_OPCODE_FLAGS; 0 for an unknown opcode. */
u32 opcode_flags(u8 opcode);
/* Returns the opcode's name, as "RC SEND_ONLY"; "unknown" for an unknown opcode. */
const char *opcode_name(u8 opcode);

/*
 * Decodes a frame. Returns XROCE_DROP_none, or the reason to drop it; then *p is undefined. Checks
 * all lengths, IP options and fragments, TVer, the opcode, and that pad and payload fit. Does not
 * check the ICRC.
 */
enum xroce_drop packet_parse(struct packet *p, const struct rx_frame *f);

/*
 * Returns the bits in which the ICRC of a packet from packet_parse() is wrong, as
 * icrc_difference(). Reads the whole packet.
 */
u32 packet_icrc_difference(const struct packet *p);
static inline bool packet_icrc_ok(const struct packet *p)
{
	return !packet_icrc_difference(p);
}
/* Returns the bytes of the packet from its IP header on. */
static inline u32 packet_bytes(const struct packet *p)
{
	return (u32)(p->end - p->ip) + p->frag_len;
}

/*
 * Copies payload bytes [offset, offset + len) of a parsed packet to dst, across the fragment
 * boundary. The range must lie inside payload_len.
 */
void packet_copy_payload(const struct packet *p, u32 offset, void *dst, u32 len);
/* Returns the packet's payload, in one place or two. */
static inline struct guard_bytes packet_payload(const struct packet *p)
{
	return (struct guard_bytes){ .at = p->payload,
				     .more = p->frag,
				     .len = (u32)min_u64(p->payload_len,
							 (u64)(p->end - p->payload)) };
}
/* Copies it to the application's memory. False if that is not accessible (guard.h). */
bool packet_place_payload(const struct packet *p, void *dst);

/* Opcodes that have any extension header. */
#define OP_EXTENSIONS                                                                              \
	(OP_DETH | OP_XRC_ETH | OP_FETH | OP_RETH | OP_ATOMIC_ETH | OP_AETH | OP_ATOMIC_ACK_ETH |  \
	 OP_IMM | OP_IETH | OP_CNP | OP_CREDIT)

/*
 * Decodes BTH and extension headers of a packet known to be valid, with all headers contiguous.
 * Returns the end of the headers.
 */
const u8 *packet_get_transport(const struct bth *bth, struct packet *p);
/*
 * Writes the extension headers of an opcode with these flags and returns their end. A RETH is
 * stored as one 16-byte unit, as it is read back at once.
 */
u8 *packet_put_extensions(u8 *pos, const struct packet *p, u32 flags);

/* Returns the word of an AETH in wire order. */
static inline __be32 packet_aeth(u8 syndrome, u32 msn)
{
	return htobe32((u32)syndrome << 24 | (msn & MSN_MASK));
}

/* Returns the bytes of all headers that packet_put_headers() would write. */
u32 packet_header_bytes(const struct path *path, u8 opcode);

/*
 * Writes all headers of p into frame and returns where the payload starts. p->payload_len must be
 * set; pad count, IP and UDP lengths and the IPv4 checksum are computed from it. p->pad, tver and
 * flags are ignored (flags come from the opcode). frame must have room for PACKET_FRAME_MAX bytes.
 */
u8 *packet_put_headers(u8 *frame, const struct path *path, const struct packet *p);

/* Writes pad and ICRC after the payload; returns the frame's length. */
u32 packet_seal(u8 *frame, u8 *payload, u32 payload_len);

/*
 * Returns the UDP source port that RoCEv2 derives from a flow label (20 bits) or, if that is 0,
 * from the QPNs (protocol sheet, "RoCEv2 encapsulation"). Constant for one QP.
 */
u16 path_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn);

#endif
