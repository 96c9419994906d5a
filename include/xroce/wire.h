/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The RoCEv2 wire format: the InfiniBand transport headers and the one opcode table, for BPF and
 * user space.
 *
 * Every multi-byte field is big-endian. 24-bit fields share a __be32 with the byte before them;
 * only the accessors below split them. Nothing here depends on the kernel's RDMA headers.
 */
#ifndef XROCE_WIRE_H
#define XROCE_WIRE_H

#include <linux/types.h>

#define ROCE_UDP_PORT	      4791
#define ROCE_UDP_SPORT_MIN    0xc000
#define ROCE_ICRC_BYTES	      4
#define ROCE_PMTU_MAX	      4096
#define ROCE_QPN_MASK	      0xffffffu
#define ROCE_PSN_MASK	      0xffffffu
#define ROCE_MULTICAST_QPN    0xffffffu
#define ROCE_DEFAULT_PKEY     0xffff
#define ROCE_PKEY_BASE	      0x7fff /* the partition; the bit above it is full membership */
#define ROCE_GRH_BYTES	      40
#define ROCE_MESSAGE_MAX      (1u << 31)

struct bth {
	__u8 opcode;
	__u8 flags;	    /* SE 0x80, MigReq 0x40, PadCnt 0x30, TVer 0x0f */
	__be16 pkey;
	__be32 ecn_qpn;	    /* FECN, BECN, 6 reserved bits, then 24 bits of destination QPN */
	__be32 ack_psn;	    /* AckReq, 7 reserved bits, then 24 bits of PSN */
} __attribute__((packed));

struct reth {
	__be64 va;
	__be32 rkey;
	__be32 dma_len;
} __attribute__((packed));

struct atomic_eth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __attribute__((packed));

struct aeth {
	__be32 syndrome_msn; /* syndrome 8, MSN 24 */
} __attribute__((packed));

struct atomic_ack_eth {
	__be64 original;
} __attribute__((packed));

struct deth {
	__be32 qkey;
	__be32 src_qpn;	    /* 8 reserved bits, source QPN 24 */
} __attribute__((packed));

struct imm_dt {
	__be32 imm;
} __attribute__((packed));

struct ieth {
	__be32 rkey;
} __attribute__((packed));

struct xrc_eth {
	__be32 srqn;	    /* 8 reserved bits, XRC SRQ number 24 */
} __attribute__((packed));

/* Credits of UC and UD, between two peers with this library: engine/credit.c. Follows a DETH. */
struct credit_eth {
	__be32 cookie;	    /* chosen by the sender; an answer repeats its probe's */
	__be32 allowance;   /* in an answer: packets 16, receive WQEs 16; else reserved */
} __attribute__((packed));

struct feth {
	__be32 flush;	    /* placement type bits 3..0, selectivity bits 5..4 */
} __attribute__((packed));

/* Tag matching: headers in the payload of an RC SEND, TMH first, then RVH in a rendezvous. */
struct tmh {
	__u8 opcode;	    /* enum tmh_opcode */
	__u8 reserved[3];
	__be32 app_ctx;
	__be64 tag;
} __attribute__((packed));

struct rvh {
	__be64 va;
	__be32 rkey;
	__be32 len;
} __attribute__((packed));

enum tmh_opcode { TMH_NO_TAG = 0, TMH_RNDV = 1, TMH_FIN = 2, TMH_EAGER = 3 };

_Static_assert(sizeof(struct bth) == 12, "BTH");
_Static_assert(sizeof(struct reth) == 16, "RETH");
_Static_assert(sizeof(struct atomic_eth) == 28, "AtomicETH");
_Static_assert(sizeof(struct aeth) == 4, "AETH");
_Static_assert(sizeof(struct atomic_ack_eth) == 8, "AtomicAckETH");
_Static_assert(sizeof(struct deth) == 8, "DETH");
_Static_assert(sizeof(struct imm_dt) == 4, "ImmDt");
_Static_assert(sizeof(struct ieth) == 4, "IETH");
_Static_assert(sizeof(struct xrc_eth) == 4, "XRCETH");
_Static_assert(sizeof(struct feth) == 4, "FETH");
_Static_assert(sizeof(struct credit_eth) == 8, "flow control");
_Static_assert(sizeof(struct tmh) == 16, "TMH");
_Static_assert(sizeof(struct rvh) == 16, "RVH");

#define BTH_SE	      0x80
#define BTH_MIGREQ    0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK  0x30
#define BTH_TVER_MASK 0x0f
#define BTH_FECN      0x80000000u
#define BTH_BECN      0x40000000u
#define BTH_ACKREQ    0x80000000u
#define BTH_RESERVED  0x3f000000u /* of ecn_qpn: sent as 0, ignored, not in the ICRC */

/*
 * A UDP socket cannot choose the identification, by which a receiver of an uncut super-packet finds
 * the length of its segments (user/engine/gso.h). So the reserved bits of the first segment's BTH
 * have a code for it. Bytes of UDP payload of each code: a BTH, 0, 4, 8 or 16 bytes of headers, a
 * payload of each path MTU, and an ICRC; then each length up to 188. 0: no code.
 */
static const __u16 roce_segment_of_code[64] = {
	0, 272, 276, 280, 288, 528, 532, 536, 544, 1040, 1044, 1048, 1056, 2064, 2068, 2072,
	2080, 4112, 4116, 4120, 4128, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72,
	76, 80, 84, 88, 92, 96, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144,
	148, 152, 156, 160, 164, 168, 172, 176, 180, 184, 188
};

/* AETH syndrome: bits 6..5 are the class, bits 4..0 a credit code, RNR timer code or NAK code. */
#define AETH_CLASS_MASK	  0x60
#define AETH_VALUE_MASK	  0x1f
#define AETH_ACK	  0x00
#define AETH_RNR_NAK	  0x20
#define AETH_NAK	  0x60
#define AETH_CREDIT_NONE  0x1f /* "credits are not used" */
#define NAK_PSN_SEQUENCE  0
#define NAK_INVALID_REQUEST 1
#define NAK_REMOTE_ACCESS 2
#define NAK_REMOTE_OPERATION 3

/* The transport service is the top three bits of the opcode. */
enum xroce_transport {
	XROCE_RC = 0,
	XROCE_UC = 1,
	XROCE_UD = 3,
	XROCE_CNP = 4,
	XROCE_XRC = 5,
	XROCE_RAW = 8, /* whole Ethernet frames without opcode */
};

#define OPCODE_TRANSPORT(opcode) ((opcode) >> 5)

/* Class of an opcode and its extension headers. Code tests a flag and never lists opcodes. */
enum {
	OP_VALID = 1 << 0,	 /* assigned: unset for reserved opcodes */
	OP_REQUEST = 1 << 1,
	OP_RESPONSE = 1 << 2,
	OP_START = 1 << 3,	 /* first or only packet of a message */
	OP_END = 1 << 4,	 /* last or only packet of a message */
	OP_PAYLOAD = 1 << 5,	 /* may carry payload */
	OP_SEND = 1 << 6,
	OP_WRITE = 1 << 7,
	OP_READ = 1 << 8,	 /* READ request or READ response */
	OP_ATOMIC = 1 << 9,	 /* CmpSwap, FetchAdd or their response */
	OP_ACK = 1 << 10,
	OP_RETH = 1 << 11,
	OP_ATOMIC_ETH = 1 << 12,
	OP_AETH = 1 << 13,
	OP_ATOMIC_ACK_ETH = 1 << 14,
	OP_IMM = 1 << 15,
	OP_IETH = 1 << 16,
	OP_DETH = 1 << 17,
	OP_XRC_ETH = 1 << 18,
	OP_FETH = 1 << 19,
	OP_FLUSH = 1 << 20,
	OP_ATOMIC_WRITE = 1 << 21,
	OP_CNP = 1 << 22,
	OP_CREDIT = 1 << 23,	 /* flow control of UC and UD */
	/* bits 24 to 31: length of the extension headers in bytes */
	OP_EXT_BYTES_SHIFT = 24,
};

#define OP_ONLY (OP_START | OP_END)

/*
 * X(name, low five bits, flags) for every request and response that RC and XRC share; UC and UD
 * have subsets. Sources: rdma_rxe's opcode table and ib_pack.h, checked against the captures in
 * tests/golden.
 */
#define ROCE_SENDS_AND_WRITES(X)                                                                   \
	X(SEND_FIRST, 0x00, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_START)                          \
	X(SEND_MIDDLE, 0x01, OP_SEND | OP_REQUEST | OP_PAYLOAD)                                    \
	X(SEND_LAST, 0x02, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_END)                             \
	X(SEND_LAST_IMM, 0x03, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_END | OP_IMM)                \
	X(SEND_ONLY, 0x04, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_ONLY)                            \
	X(SEND_ONLY_IMM, 0x05, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_IMM)               \
	X(WRITE_FIRST, 0x06, OP_WRITE | OP_REQUEST | OP_PAYLOAD | OP_START | OP_RETH)              \
	X(WRITE_MIDDLE, 0x07, OP_WRITE | OP_REQUEST | OP_PAYLOAD)                                  \
	X(WRITE_LAST, 0x08, OP_WRITE | OP_REQUEST | OP_PAYLOAD | OP_END)                           \
	X(WRITE_LAST_IMM, 0x09, OP_WRITE | OP_REQUEST | OP_PAYLOAD | OP_END | OP_IMM)              \
	X(WRITE_ONLY, 0x0a, OP_WRITE | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_RETH)                \
	X(WRITE_ONLY_IMM, 0x0b, OP_WRITE | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_RETH | OP_IMM)

#define ROCE_RELIABLE_REQUESTS(X)                                                                  \
	X(READ_REQUEST, 0x0c, OP_READ | OP_REQUEST | OP_ONLY | OP_RETH)                            \
	X(CMP_SWAP, 0x13, OP_ATOMIC | OP_REQUEST | OP_ONLY | OP_ATOMIC_ETH)                        \
	X(FETCH_ADD, 0x14, OP_ATOMIC | OP_REQUEST | OP_ONLY | OP_ATOMIC_ETH)                       \
	X(SEND_LAST_INV, 0x16, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_END | OP_IETH)               \
	X(SEND_ONLY_INV, 0x17, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_IETH)              \
	X(FLUSH, 0x1c, OP_FLUSH | OP_REQUEST | OP_ONLY | OP_FETH | OP_RETH)                        \
	X(ATOMIC_WRITE, 0x1d, OP_ATOMIC_WRITE | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_RETH)

#define ROCE_RESPONSES(X)                                                                          \
	X(READ_RESPONSE_FIRST, 0x0d, OP_READ | OP_RESPONSE | OP_PAYLOAD | OP_START | OP_AETH)      \
	X(READ_RESPONSE_MIDDLE, 0x0e, OP_READ | OP_RESPONSE | OP_PAYLOAD)                          \
	X(READ_RESPONSE_LAST, 0x0f, OP_READ | OP_RESPONSE | OP_PAYLOAD | OP_END | OP_AETH)         \
	X(READ_RESPONSE_ONLY, 0x10, OP_READ | OP_RESPONSE | OP_PAYLOAD | OP_ONLY | OP_AETH)        \
	X(ACKNOWLEDGE, 0x11, OP_ACK | OP_RESPONSE | OP_ONLY | OP_AETH)                             \
	X(ATOMIC_ACKNOWLEDGE, 0x12, OP_ATOMIC | OP_RESPONSE | OP_ONLY | OP_AETH | OP_ATOMIC_ACK_ETH)

#define ROCE_UD_SENDS(X)                                                                           \
	X(SEND_ONLY, 0x04, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_DETH)                  \
	X(SEND_ONLY_IMM, 0x05, OP_SEND | OP_REQUEST | OP_PAYLOAD | OP_ONLY | OP_DETH | OP_IMM)

/*
 * X(low five bits): opcodes of RC and XRC that have no meaning. The responder answers them with a
 * NAK, so they count as requests, of any payload, which neither begin nor continue a message. The
 * reserved opcodes of the other services are dropped, as no response tells their sender.
 */
#define ROCE_RESERVED_REQUESTS(X) X(0x15) X(0x18) X(0x19) X(0x1a) X(0x1b) X(0x1e) X(0x1f)

/* The low five bits as an enum; a full opcode is OPCODE(XROCE_RC, OP5_SEND_ONLY). */
enum {
#define X(name, low, flags) OP5_##name = low,
	ROCE_SENDS_AND_WRITES(X)
	ROCE_RELIABLE_REQUESTS(X)
	ROCE_RESPONSES(X)
#undef X
};

#define OPCODE(transport, low) ((__u8)((transport) << 5 | (low)))
#define OPCODE_CNP 0x81
/* Manufacturer-specific opcodes (top bits 110 and 111); peers without them drop these packets. */
#define OPCODE_CREDIT_PROBE  0xc0
#define OPCODE_CREDIT_ANSWER 0xc1
#define ROCE_CNP_BYTES 16 /* reserved bytes in place of extension headers */

/* Bytes of extension headers for these flags. */
#define ROCE_EXT(flags, bit, header) ((flags) & (bit) ? (__u32)sizeof(struct header) : 0)
#define ROCE_EXT_BYTES(flags)                                                                      \
	(ROCE_EXT(flags, OP_DETH, deth) + ROCE_EXT(flags, OP_XRC_ETH, xrc_eth) +                   \
	 ROCE_EXT(flags, OP_FETH, feth) + ROCE_EXT(flags, OP_RETH, reth) +                         \
	 ROCE_EXT(flags, OP_ATOMIC_ETH, atomic_eth) + ROCE_EXT(flags, OP_AETH, aeth) +             \
	 ROCE_EXT(flags, OP_ATOMIC_ACK_ETH, atomic_ack_eth) + ROCE_EXT(flags, OP_IMM, imm_dt) +    \
	 ROCE_EXT(flags, OP_IETH, ieth) + ROCE_EXT(flags, OP_CREDIT, credit_eth) +                 \
	 ((flags)&OP_CNP ? ROCE_CNP_BYTES : 0))

/*
 * The table's rows as designated initialisers: `static const __u32 t[256] = { ROCE_OPCODE_FLAGS
 * };`.
 */
#define ROCE_ROW(service, low, flags)                                                              \
	[((service) << 5) | (low)] =                                                               \
		OP_VALID | (flags) | ROCE_EXT_BYTES(flags) << OP_EXT_BYTES_SHIFT,
#define ROCE_ROW_RC(name, low, flags)  ROCE_ROW(XROCE_RC, low, flags)
#define ROCE_ROW_UC(name, low, flags)  ROCE_ROW(XROCE_UC, low, flags)
#define ROCE_ROW_UD(name, low, flags)  ROCE_ROW(XROCE_UD, low, flags)
#define ROCE_ROW_XRQ(name, low, flags) ROCE_ROW(XROCE_XRC, low, OP_XRC_ETH | (flags))
#define ROCE_ROW_XRS(name, low, flags) ROCE_ROW(XROCE_XRC, low, flags)
#define ROCE_ROW_RSV(low)                                                                          \
	[OPCODE(XROCE_RC, low)] = OP_REQUEST | OP_PAYLOAD,                                         \
	[OPCODE(XROCE_XRC, low)] = OP_REQUEST | OP_PAYLOAD,
#define ROCE_OPCODE_FLAGS                                                                          \
	ROCE_SENDS_AND_WRITES(ROCE_ROW_RC)                                                         \
	ROCE_RELIABLE_REQUESTS(ROCE_ROW_RC)                                                        \
	ROCE_RESPONSES(ROCE_ROW_RC)                                                                \
	ROCE_SENDS_AND_WRITES(ROCE_ROW_UC)                                                         \
	ROCE_UD_SENDS(ROCE_ROW_UD)                                                                 \
	ROCE_SENDS_AND_WRITES(ROCE_ROW_XRQ)                                                        \
	ROCE_RELIABLE_REQUESTS(ROCE_ROW_XRQ)                                                       \
	ROCE_RESPONSES(ROCE_ROW_XRS)                                                               \
	ROCE_RESERVED_REQUESTS(ROCE_ROW_RSV)                                                       \
	ROCE_ROW(OPCODE_CNP >> 5, OPCODE_CNP & 0x1f, OP_CNP | OP_ONLY)                             \
	ROCE_ROW(OPCODE_CREDIT_PROBE >> 5, OPCODE_CREDIT_PROBE & 0x1f, OP_CREDIT | OP_DETH)        \
	ROCE_ROW(OPCODE_CREDIT_ANSWER >> 5, OPCODE_CREDIT_ANSWER & 0x1f, OP_CREDIT | OP_DETH)

/* Bytes of extension headers between BTH and payload, from an opcode's flags. */
static inline __u32 roce_ext_bytes(__u32 flags)
{
	return flags >> OP_EXT_BYTES_SHIFT;
}

/*
 * True if the low 15 bits of the P_Keys agree and at least one side is a full member (bit 15): IBTA
 * 10.9.3, protocol sheet.
 */
static inline int roce_pkey_matches(__u16 a, __u16 b)
{
	return ((a ^ b) & ROCE_PKEY_BASE) == 0 && ((a | b) & 0x8000);
}

#endif
