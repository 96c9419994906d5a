/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Definitions shared by the XDP programs and user space: fixed-width types only, with sizes and
 * offsets asserted.
 *
 * Each struct's comment names its writer and its readers. `bpftool map dump name xroce_...` prints
 * the maps by these field names, which are chosen for that reader.
 */
#ifndef XROCE_ABI_H
#define XROCE_ABI_H

#include <linux/types.h>
#include <xroce/wire.h>

#define XROCE_MAX_QP	   16384
#define XROCE_MAX_CQ	   16384
#define XROCE_NO_CQ	   (~0u) /* XRC: a QP without that CQ */
/* receive queues of an interface, each with the completion vector of the same number */
#define XROCE_MAX_QUEUE	   64
#define XROCE_MAX_RING	   64	/* completion channels of a process that have a wake-up ring */
/* wake-up rings: the vectors' first, then the channels' */
#define XROCE_MAX_CHANNEL  (XROCE_MAX_QUEUE + XROCE_MAX_RING)
/* instead of a key: XDP wakes the worker of the packet's receive queue */
#define XROCE_CHANNEL_WORKER XROCE_MAX_CHANNEL
#define XROCE_MAX_SHARD	   8	/* engines of a device, each with its own receive queues */
#define XROCE_MAX_GID	   64
#define XROCE_MAX_GROUP	   256	/* multicast groups with members in one process */
#define XROCE_MAX_FLOW	   256	/* flows of raw packet QPs */
#define XROCE_MAX_COUNTER  256	/* keys of xroce_flow_cnt; 0 is not used */
/* processes with sockets: each has XROCE_MAX_QUEUE slots in xroce_xsk */
#define XROCE_MAX_OWNER	   16
#define XROCE_RING_BYTES   4096 /* one wake-up ring: a record is 16 bytes with its header */

/*
 * The CQE that XDP writes in front of each redirected packet (bpf_xdp_adjust_meta). AF_XDP carries
 * the CQE into the UMEM, in the 32 bytes before the RX descriptor's address. XDP writes, the
 * library reads. It is a hint: the library checks the packet again.
 */
struct xroce_rx_cqe {
	__u32 qpn;		/* destination QPN */
	__u32 src_qpn;		/* from the DETH, 0 for connected transports */
	/* immediate data or the R_Key to invalidate, in wire order; see flags */
	__be32 imm;
	/* payload bytes without padding, counted like rx_bytes of xroce_qp */
	__u16 byte_len;
	/* VLAN tag in host order; of two tags, the 802.1Q tag inside 802.1ad; see flags */
	__u16 vlan_tci;
	__u64 rx_time_ns;	/* CLOCK_MONOTONIC; 0 unless requested */
	__u8 opcode;		/* BTH opcode */
	__u8 flags;		/* XROCE_RX_* */
	/* IPv4 TOS or IPv6 traffic class: DSCP and ECN; the service level is tos >> 5 */
	__u8 tos;
	/* offset of the IP header in the frame: 14, 18 or 22; 0: a frame for a flow */
	__u8 l3_offset;
	__u32 flow_tag;		/* hash of source address and UDP source port; 0 unless requested */
};
_Static_assert(sizeof(struct xroce_rx_cqe) == 32,
	       "32 bytes is the largest metadata that every kernel carries");

enum {
	XROCE_RX_IMM = 1 << 0,
	XROCE_RX_INV = 1 << 1,
	XROCE_RX_SOLICITED = 1 << 2,
	XROCE_RX_VLAN = 1 << 3,
	XROCE_RX_IPV6 = 1 << 4,
	XROCE_RX_CE = 1 << 5,	/* ECN: congestion experienced */
	/* redirected without a wake-up record: threads sleep on the sockets, see xroce_vector */
	XROCE_RX_UNANNOUNCED = 1 << 7,
	/*
	 * UDP super-packet, still to be segmented (engine/gso.h); all fields but byte_len describe
	 * the first segment
	 */
	XROCE_RX_GSO = 1 << 6,
};

/*
 * A UDP super-packet: an IPv4 packet whose UDP payload holds the payloads of several packets in a
 * row. XDP and the library apply the same limits, so that both count the same packets.
 */
#define XROCE_SEGMENT_MIN  16u	 /* bytes of UDP payload of a packet: a BTH and an ICRC */
#define XROCE_SEGMENT_MAX  4160u /* the largest path MTU and the longest headers */
/* the kernel makes none with more segments (UDP_MAX_SEGMENTS; 64 in older kernels) */
#define XROCE_SEGMENTS_MAX 128u

#define XROCE_QP_SLOT(qpn) ((qpn) % XROCE_MAX_QP)

/*
 * xroce_qp (ARRAY of XROCE_MAX_QP, mmapable; key: XROCE_QP_SLOT of the QPN): the destination of a
 * packet. User space writes all but the last four fields, which XDP counts. It writes `qpn` last,
 * and clears it first. While it changes an address of a QP that receives, `receiving` is 0, and
 * XDP drops the QP's packets. Other fields change one by one: a packet at that moment is checked
 * against the old or the new value of each, and the engine checks it again.
 */
struct xroce_qp {
	__u32 qpn;		/* 0: the slot is free */
	/* key of the owner's first socket in xroce_xsk; add the receive queue */
	__u32 xsk_base;
	enum xroce_transport transport;
	__u32 receiving;	/* 1 from RTR on, 0 in RESET, INIT and ERR */
	__u16 pkey;
	/* the reader of its CQ asked for rx_time_ns, which costs time; else rx_time_ns is 0 */
	__u8 with_time;
	__u8 with_flow_tag;	/* likewise for flow_tag */
	__u32 qkey;		/* UD only */
	/* own GID (IPv4 as ::ffff:a.b.c.d); zero for UD, which receives on every GID */
	__u8 local[16];
	__u8 peer[16];		/* the only permitted source address; zero for UD */
	__u32 send_cq;		/* key in xroce_cq */
	__u32 recv_cq;		/* key in xroce_cq */
	/* the next cache line, which XDP writes */
	__u32 pid;		/* owner, for readers of a dump */
	__u32 pad;
	__u64 rx_packets;
	/* payload bytes; a super-packet counts as if each packet had the first one's headers */
	__u64 rx_bytes;
	/* frames for this QP that a check rejected; a super-packet counts once */
	__u64 rx_dropped;
	__u64 wakeups;
	__u64 reserved[3];
};
_Static_assert(sizeof(struct xroce_qp) == 128, "xroce_qp");

/*
 * xroce_cq (ARRAY, mmapable): the arm word of each CQ. User space stores ANY (seq_cst) or exchanges
 * DISARMED for SOLICITED. XDP exchanges the word for 0 when a packet will complete work on the CQ.
 * The CPU that took a non-zero value writes the record.
 */
enum { XROCE_CQ_DISARMED = 0, XROCE_CQ_ARMED_ANY = 1, XROCE_CQ_ARMED_SOLICITED = 2 };

struct xroce_cq {
	__u32 armed;		/* user space sets, XDP takes */
	/*
	 * key in xroce_channel; 0: no completion channel; XROCE_CHANNEL_WORKER: a channel without
	 * its own ring. User space writes
	 */
	__u32 channel;
	__u64 wakeups;		/* XDP counts */
	/* key in xroce_vector, where a QP with this receive CQ starts. User space writes */
	__u32 vector;
	__u8 pad[44];		/* a cache line each */
};
_Static_assert(sizeof(struct xroce_cq) == 64, "xroce_cq");

/*
 * xroce_expect (ARRAY of XROCE_MAX_QP, mmapable; key: XROCE_QP_SLOT of the QPN): for QPs whose send
 * CQ has a completion channel, the first PSN whose acknowledgement or response completes a work
 * request there. User space writes the PSN before it sends the request, XDP reads it.
 */
#define XROCE_EXPECTED (1u << 31)

struct xroce_expect {
	__u32 psn;		/* with XROCE_EXPECTED; 0: no response completes anything */
	__u32 pad;
};

/* A service that the process's connection manager listens on, for `xroce list`. */
struct xroce_listener {
	__u64 service;
	__u8 address[16];	/* the address listened on; 0: all addresses of the families */
	__u32 families;		/* ASK_IPV4, ASK_IPV6; 0: free. Written last, cleared first */
	__u32 pad;
};

#define XROCE_LISTENERS 126	/* as many as fit in a page, the map's minimum size */

/*
 * xroce_engine (ARRAY of 1, mmapable): the device. User space writes, and XDP reads pid and gid.
 * XDP writes the counters of violations.
 */
struct xroce_engine {
	__u32 pid;
	__u32 listeners;	/* total number; listener[] has as many as fit */
	/*
	 * entry 0 of the GID table, also in xroce_gid: most datagrams have this destination, which
	 * saves the lookup
	 */
	__u8 gid[16];
	struct xroce_listener listener[XROCE_LISTENERS];
	__u32 traced;	/* XROCE_TRACED: xroce/trace.h */
	/*
	 * raw is 1 while the process has raw packet QPs, which keep other processes off the
	 * interface; others is 1 while there are others, and written by the broker. Each side sets
	 * its word, then reads the other's, both with full barriers. The later side resets its
	 * word.
	 */
	__u32 raw, others;
	__u32 pad;
	/* frames dropped for their keys, as in xroce_drop: atomic, for a process without bpf(2) */
	__u64 bad_pkeys, bad_qkeys;
	/* records that found no room in the socket for reports: xroce/trace.h */
	__u32 lost_packets, lost_events;
};
_Static_assert(sizeof(struct xroce_engine) <= 4096, "a page");

/*
 * xroce_vector (ARRAY of XROCE_MAX_QUEUE, mmapable): the receive queues and the completion vectors
 * with the same numbers, each with an optional worker. `asleep`: the worker sets it
 * while it sleeps without the socket and threads of the application sleep on the socket. XDP clears
 * it (exchange) when it writes the wake-up record of a packet from this queue. While `watched` is
 * not 0, threads sleep on the socket itself and then run the engine. XDP then takes no arm word and
 * writes no record: interrupting the CPU for one costs more than all else together.
 *
 *	XDP, after redirecting a packet		the last watcher to leave
 *	if watched: add 1 to unannounced	set watched to 0 (full barrier);
 *	(full barrier);				run the engine; if fewer packets
 *	if still watched: done;			arrived than unannounced says,
 *	else take arm words			wait briefly for the rest
 */
struct xroce_vector {
	__u32 asleep;		/* user space sets, XDP takes */
	/* key in xroce_channel of the thread to wake for the queue. User space writes */
	__u32 ring;
	__u64 wakeups;		/* for packets from this queue. XDP counts */
	__u64 events;		/* completion events found in its shard. User space counts */
	/* TID of the worker; 0: none, another thread's ring is used. User space writes */
	__u32 tid;
	__u32 watched;		/* number of threads on the socket. User space counts */
	__u64 unannounced;	/* packets redirected without a wake-up record. XDP counts */
	__u8 pad[24];		/* a cache line each */
};
_Static_assert(sizeof(struct xroce_vector) == 64, "xroce_vector");

/*
 * The record in a ring buffer, a hint: the CQ may have work. In a vector's ring, cq is ~0 and the
 * record means the queue's socket.
 */
struct xroce_wakeup {
	__u32 cq;
	__u32 qpn;
};

/*
 * A GID of the interface, key of xroce_gid (HASH, value: __u32 index in the GID table). Packets to
 * other addresses pass to the kernel.
 */
struct xroce_gid_key {
	__u8 gid[16];
};

/*
 * xroce_group (HASH, key: struct xroce_gid_key): the multicast groups that QPs of this process are
 * attached to. XDP redirects a packet to one of these addresses and QPN 0xffffff; the engine finds
 * the member QPs. User space writes the first two fields, XDP counts. A broker's client has no
 * entry: its program gets only its own packets.
 */
struct xroce_group {
	__u32 members;
	__u32 pid;		/* owner, for readers of a dump */
	__u64 rx_packets;
};

/* The kind of a frame, by its headers; the kind decides which fields of a key are set. */
enum {
	XROCE_FLOW_MULTICAST = 1 << 0, /* the destination MAC has the group bit */
	XROCE_FLOW_VLAN = 1 << 1,
	XROCE_FLOW_IPV4 = 1 << 2,
	XROCE_FLOW_IPV6 = 1 << 3,
	XROCE_FLOW_UDP = 1 << 4,
	XROCE_FLOW_TCP = 1 << 5,
	XROCE_FLOW_VXLAN = 1 << 6,
	XROCE_FLOW_GRE = 1 << 7,
	XROCE_FLOW_TUNNEL = 1 << 8,   /* VXLAN or GRE */
	XROCE_FLOW_ETHERNET = 1 << 9, /* inner headers only: they begin with a MAC header */
	XROCE_FLOW_ESP = 1 << 10,
	XROCE_FLOW_MPLS = 1 << 11, /* directly after the MAC header, or in GRE */
};

/* IPv4 flags of a key, with the values that the kernel gives adapters (enum ib_ipv4_flags). */
enum { XROCE_FLOW_DONT_FRAGMENT = 1 << 1, XROCE_FLOW_MORE_FRAGMENTS = 1 << 2 };

/*
 * The fields of a frame that flows match: in wire order except kinds, 0 where the frame lacks the
 * header. flow.h fills the key in.
 */
struct xroce_flow_key {
	__u8 dst_mac[6], src_mac[6];
	__be16 ether_type;	/* after the VLAN tags */
	__be16 vlan_tci;	/* of the first tag */
	__u32 src[4], dst[4];	/* addresses; IPv4: the first of the four */
	__be16 sport, dport;
	__u8 proto;		/* IPv6: next header of the first header */
	__u8 tos, ttl;		/* traffic class, hop limit */
	__u8 ip_flags;		/* XROCE_FLOW_*_FRAGMENT* */
	__be32 flow_label;	/* of IPv6; of MPLS the whole first entry */
	__u32 kinds;		/* XROCE_FLOW_* */
	__be32 spi, seq;	/* of ESP */
};
_Static_assert(sizeof(struct xroce_flow_key) == 72, "whole words, none padded");

/*
 * The headers inside a tunnel, for keys of kind XROCE_FLOW_TUNNEL. Flows without that kind do not
 * match these fields.
 */
struct xroce_flow_tunnel {
	__be32 id;		/* VXLAN: the VNI; GRE: the key, 0 without one */
	__be16 gre_flags, gre_protocol;
	struct xroce_flow_key inner; /* no MACs if the tunnel carries no Ethernet frame */
};
_Static_assert(sizeof(struct xroce_flow_tunnel) == 80, "whole words, none padded");

/*
 * xroce_flow (ARRAY of 2 * XROCE_MAX_FLOW): the flows of raw packet QPs, in match order, in one
 * half of the map. xroce_flows (ARRAY of 1) selects the half. User space writes the other half and
 * then increments the generation, so XDP always finds a complete order. For a RoCEv2 packet to this
 * device, XDP walks only flows with copies; for other frames, all flows. The first flow that takes
 * the frame redirects or drops it, and counts it. Before that, XDP copies the frame for flows with
 * copies. The engine compares again to find the QPs.
 */
struct xroce_flow {
	struct xroce_flow_key value, mask;
	__u32 qpn;		/* QP whose CQ is woken; if several flows match, the first one's */
	/*
	 * lower values match first; each flow of one order gets a copy of the frame; flows of an
	 * order either all have XROCE_FLOW_COPY or none does
	 */
	__u32 order;
	__u32 actions;		/* XROCE_FLOW_* */
	__u32 counter;		/* key in xroce_flow_cnt; 0: not counted */
	struct xroce_flow_tunnel tunnel_value, tunnel_mask;
};
_Static_assert(sizeof(struct xroce_flow) == 320, "xroce_flow");

enum {
	XROCE_FLOW_DROP = 1 << 0,      /* drops the frames that it takes */
	XROCE_FLOW_MORE_COUNT = 1 << 1, /* later flows of the same order count too */
	XROCE_FLOW_COPY = 1 << 2,	/* gets a copy; the frame continues */
};

/*
 * xroce_copies (ARRAY_OF_MAPS of 1): the ring buffer for copies of frames that match a flow with
 * XROCE_FLOW_COPY. The frames themselves continue as if there were no such flow. The library
 * creates the buffer with the first such flow and reads it until the process exits. XDP writes
 * struct xroce_rx_record, whose CQE has the time, and the kind instead of the opcode. For a RoCEv2
 * packet to this device it also has XROCE_RX_GSO and the IP header's offset. The engine, not XDP,
 * copies frames that flows redirect to the socket.
 */
#define XROCE_COPY_RING_BYTES (4u << 20)

enum {
	XROCE_COPY_OTHER = 1, /* passed to the kernel, or dropped by a flow */
	XROCE_COPY_OWN = 2,   /* a RoCEv2 packet for this device, used or dropped */
};

/*
 * xroce_flow_cnt (PERCPU_ARRAY of XROCE_MAX_COUNTER): frames taken by flows with a counter. XDP
 * counts, per CPU. Frames from this process's QPs do not pass XDP; the engine counts them
 * elsewhere. XDP never clears a counter: the new owner of a key subtracts the initial value.
 */
struct xroce_flow_count {
	__u64 packets;
	__u64 bytes;		/* whole frames without FCS */
};

struct xroce_flows {
	__u32 generation;	/* the last bit selects the active half */
	__u32 num[2];		/* flows in each half */
	/* bytes of the longest frame that a flow takes, by the interface's MTU */
	__u32 longest;
};

#define XROCE_FLOW_HALF(generation) ((generation)&1)

/*
 * Reasons for drops: one line defines the enum value, the counter's field and its text. XDP decides
 * the first part and counts it in xroce_drop (PERCPU_ARRAY of 1). The engines decide the second and
 * count it in xroce_eng_drop (ARRAY of XROCE_MAX_SHARD, mmapable, one element each). Both maps have
 * the same value type, so a reason may move or be checked on both sides.
 *
 * A function that decides on a packet, in XDP or the library, returns an enum xroce_drop: the
 * reason, or XROCE_DROP_none, which is 0, for a packet that is not dropped.
 */
#define XROCE_DROP_REASONS(X)                                                                      \
	X(ip_options, "IPv4 header with options")                                                  \
	X(ip_fragment, "IP fragment")                                                              \
	X(ip_length, "IP length does not fit the frame")                                           \
	X(udp_length, "UDP length does not fit the IP length")                                     \
	X(bth_short, "too short for a BTH and ICRC")                                               \
	X(bth_version, "BTH transport version is not 0")                                           \
	X(opcode, "opcode is not in the table")                                                    \
	X(ext_short, "too short for its extension headers")                                        \
	X(pad, "pad count does not match the payload, or payload not allowed")                     \
	X(payload_long, "payload longer than 4096 bytes")                                          \
	X(qp_unknown, "no such QP")                                                                \
	X(qp_transport, "opcode of another transport service than the QP's")                       \
	X(qp_state, "QP is not ready to receive")                                                  \
	X(pkey, "P_Key does not match")                                                            \
	X(qkey, "Q_Key does not match")                                                            \
	X(peer, "not from the connected peer")                                                     \
	X(metadata, "driver leaves no room for the CQE")                                           \
	X(no_socket, "no AF_XDP socket on this receive queue")                                     \
	X(ring_full, "receive ring of the process is full")                                        \
	X(icrc, "ICRC is wrong")                                                                   \
	X(not_roce, "not a RoCEv2 packet to one of our addresses")                                 \
	X(length, "payload length not allowed for the opcode and path MTU")                        \
	X(sequence, "opcode out of sequence within a message")                                     \
	X(psn_ahead, "PSN ahead of the expected one")                                              \
	X(psn_duplicate, "duplicate without a stored result, or a stale response")                 \
	X(no_receive, "no receive WQE posted (UD, UC)")                                            \
	X(receive_short, "receive WQE too short (UD, UC)")                                         \
	X(unexpected_response, "response that no outstanding request asked for")                   \
	X(access, "remote access refused (UC)")                                                    \
	X(cnp, "congestion notification that no sent packet can have caused")                      \
	X(multibuffer, "frame in more buffers than a RoCEv2 packet needs")                         \
	X(descriptor, "AF_XDP descriptor with an invalid buffer address")                          \
	X(not_handed, "for a QP of another engine, and could not be handed over")                  \
	X(mad, "to QP 1 of a shared interface, but not a complete CM MAD")                         \
	X(mad_port, "MAD for a privileged port that no process is bound to")                      \
	X(flow, "frame that no longer matches a flow")                                             \
	X(flow_drop, "frame that a flow drops (IBV_FLOW_SPEC_ACTION_DROP)")                        \
	X(mad_silent, "connection message from an address with no known MAC")                      \
	X(mad_half_open, "connection request of an address with too many half-open ones")

enum xroce_drop {
	XROCE_DROP_none,
#define X(name, text) XROCE_DROP_##name,
	XROCE_DROP_REASONS(X)
#undef X
	XROCE_DROP_END
};
#define XROCE_DROP_COUNT (XROCE_DROP_END - 1) /* reasons, and thus counters */
/* The index of a reason's counter in struct xroce_drops, read as an array. */
#define XROCE_DROP_INDEX(reason) ((__u32)(reason)-1)

struct xroce_drops {
#define X(name, text) __u64 name;
	XROCE_DROP_REASONS(X)
#undef X
	/* pads to whole cache lines, which no two engines share */
	__u64 unused[8 - XROCE_DROP_COUNT % 8];
};
_Static_assert(__builtin_offsetof(struct xroce_drops, unused) == XROCE_DROP_COUNT * sizeof(__u64),
	       "one counter a reason");
_Static_assert(sizeof(struct xroce_drops) % 64 == 0, "whole cache lines");

/* xroce_rx (PERCPU_ARRAY of 1): XDP's decisions on the device's packets. */
struct xroce_rx_stats {
	__u64 redirected;	/* to an AF_XDP socket */
	__u64 redirected_bytes; /* whole frames */
	__u64 dropped;
	__u64 passed;		/* RoCEv2 by UDP port, but not to one of our GIDs */
	__u64 cq_wakeups;
	__u64 engine_wakeups;
	__u64 super_packets;	/* of redirected: UDP super-packets, not segmented yet */
	__u64 super_segments;	/* RoCEv2 packets in super_packets */
	__u64 copied;		/* frames copied to xroce_copies, */
	__u64 copies_lost;	/* or not copied: no room there, or too long */
};

/*
 * xroce_sock (ARRAY of XROCE_MAX_QUEUE, mmapable): the fate of the frames that XDP redirected to
 * the AF_XDP socket of each receive queue. The library writes, anyone reads. Summed over all
 * queues, and apart from frames that are now in the receive rings,
 *
 *	redirected (xroce_rx) = rx_frames + rx_ring_full + rx_dropped + rx_left
 *
 * The engines get every frame taken, and use it or drop it for a counted reason:
 *
 *	rx_frames - rx_super_packets + rx_super_segments =
 *		rx_packets - loopback_packets (xroce_eng_stat)
 *
 * A process that receives from xroce_ring counts in the first queue's element, and one with AF_XDP
 * sockets counts its ring in the element after its queues'. There, redirected counts frames that
 * XDP wrote to the ring; rx_ring_full and rx_dropped stay 0. XDP drops frames without room in the
 * ring (ring_full of xroce_drop).
 */
struct xroce_sock {
	__u64 rx_frames;	/* taken from the receive ring */
	__u64 rx_super_packets;	/* of rx_frames: super-packets, */
	__u64 rx_super_segments; /* and the packets in them */
	__u64 rx_left;		/* still in the receive ring at close of the socket */
	/* The socket's XDP_STATISTICS, read 100 ms after packets arrived and at close. */
	__u64 rx_ring_full;	/* frames lost: the receive ring was full */
	/* frames lost: no buffer to receive into, or frame too long for this kernel */
	__u64 rx_dropped;
	__u64 rx_fill_ring_empty; /* times that the kernel found no buffer */
	__u64 rx_invalid_descs;	/* buffers that the kernel rejected */
	__u64 tx_invalid_descs;	/* frames to send that the kernel rejected */
	__u64 tx_ring_empty;	/* times that the kernel found no frame to send */
	__u64 unused[6];
};
_Static_assert(sizeof(struct xroce_sock) == 128, "each queue's in cache lines of their own");

/*
 * xroce_eng_stat (ARRAY of XROCE_MAX_SHARD, mmapable): counters of each engine. The engine writes;
 * anyone may read and sum them up.
 */
struct xroce_engine_stats {
	__u64 rx_packets;
	__u64 tx_packets;
	__u64 tx_bytes;
	__u64 loopback_packets;
	__u64 tx_acks;
	__u64 rx_acks;
	__u64 tx_retransmitted; /* request packets sent again */
	__u64 timeouts;
	__u64 tx_sequence_naks;
	__u64 rx_sequence_naks;
	__u64 tx_rnr_naks;
	__u64 rx_rnr_naks;
	__u64 implied_naks;
	__u64 duplicate_requests;
	__u64 remote_errors;	/* fatal NAKs sent */
	__u64 cq_overruns;
	__u64 tx_no_room;	/* times the transmit ring was full */
	/* bytes of whole frames: requests sent again, READ responses to duplicates */
	__u64 tx_retransmitted_bytes;
	__u64 rx_held;		/* packets that arrived early and were held until their turn */
	/* packets resent by the adaptive timeout, before the user's timeout */
	__u64 rto_probes;
	__u64 credit_waits;	/* messages that waited for the peer's credits */
	__u64 rx_ce;		/* data packets marked "congestion experienced" */
	__u64 tx_cnps;
	__u64 rx_cnps;
	__u64 tx_xsk;		/* frames sent, by path: through the AF_XDP socket, */
	__u64 tx_tap;		/* the TAP device, */
	__u64 tx_live;		/* as XDP live frames; */
	__u64 tx_lost;		/* frames that the kernel rejected */
	/* current limit of redirected frames per 50 us; the largest value means no limit */
	__u64 tx_pacer;
	/* times that tx_pacer was halved because the interface lost frames */
	__u64 tx_slowed;
	__u64 tx_tap_writes;	/* system calls for tx_tap */
	__u64 tx_live_runs;	/* system calls for tx_live */
	/* frames sent through the packet socket, or to the TAP device in super-packets, */
	__u64 tx_gso;
	__u64 tx_gso_sends;	/* and packets for them: super-packets and single frames */
	/* frames handed over to the shard that owns the QP */
	__u64 rx_handed;
	__u64 qps_moved;	/* QPs that moved here because their packets arrive here */
	__u64 flow_probes;	/* UC and UD: queries for the receiver's allowance, */
	__u64 flow_answers;	/* answers with this side's allowance, */
	__u64 flow_waits;	/* times that a QP waited for an answer */
	/* times that super-packets were given up: the interface rejected or dropped them */
	__u64 tx_gave_up;
	__u64 late_deadlines;	/* timeouts that were noticed late and postponed */
	/* requests of peers executed here, each counted once however often it was sent: */
	__u64 rx_writes;	/* RDMA WRITE, UC included, with or without immediate data */
	__u64 rx_reads;		/* RDMA READ; a long READ may arrive as several requests */
	__u64 rx_atomics;	/* compare and swap, fetch and add */
	/* work requests completed in error; a send error counts once, under its first reason */
	__u64 req_errors;
	__u64 req_retry_exceeded;
	__u64 req_rnr_exceeded;
	__u64 req_remote_access; /* remote errors: the peer denied access, */
	__u64 req_remote_invalid; /* found the request invalid, */
	__u64 req_remote_operation; /* or could not execute it */
	__u64 req_flushed;	/* sends flushed */
	__u64 resp_flushed;	/* receives flushed */
	__u64 resp_errors;	/* receives completed in error */
	__u64 resp_length;	/* of these: shorter than the message */
	__u64 resp_access;	/* QPs stopped by a peer's request without access rights, */
	__u64 resp_invalid;	/* or by an invalid request */
	__u64 tx_copies_lost;	/* copies of sent frames for local flows and groups lost: no room */
	__u64 rto_spurious;	/* of rto_probes: the answer was late, nothing was lost */
	/* pads to whole cache lines, which no two engines share; new counters go here */
	__u64 tx_udp;		/* frames sent through UDP sockets, */
	__u64 tx_udp_sends;	/* and datagrams for them: super-packets and single frames */
	__u64 unused[4];
};
_Static_assert(sizeof(struct xroce_engine_stats) % 64 == 0, "whole cache lines");

/*
 * For several processes on one interface: each has its own instance of this program and these maps.
 * A process that did not attach the program receives from a ring buffer (xroce_ring) instead of
 * AF_XDP. XDP writes a record per packet: the CQE, the frame's length, the frame. The record is a
 * hint like the CQE: the reader can change records that it has not read yet, but no other
 * process's.
 */
#define XROCE_RX_RING_BYTES (4u << 20)

struct xroce_rx_record {
	struct xroce_rx_cqe cqe;
	__u32 len;		/* frame's length; up to 64 KiB for a super-packet */
	__u32 pad;
	__u8 frame[];
};
_Static_assert(sizeof(struct xroce_rx_record) == 40, "xroce_rx_record");

/*
 * Programs and maps of the broker only: the program before the clients' (xroce_mux) and the one on
 * each client's TAP device (xroce_egress), with their own xroce_gid, xroce_engine, xroce_rx and
 * xroce_drop.
 *
 * xroce_owner (HASH, key: QPN): the owner of a QPN. The broker writes, both programs read.
 */
#define XROCE_MAX_CLIENT 1024
#define XROCE_MAX_TAP	 (2 * XROCE_MAX_CLIENT + 1) /* each client's devices, and the broker's */
#define XROCE_MAX_OWNED	 65536 /* QPNs of all clients together */

struct xroce_owner {
	__u32 client;		/* key in xroce_client, the PROG_ARRAY of the clients' programs */
	__u32 pid;		/* for readers of a dump */
};

/*
 * QP 1 and the connection manager (CM): each client may have a QP 1; xroce_mux finds the
 * destination client of a MAD. The upper bits of a communication id are its owner's place; the
 * owner picks the lower bits at random.
 */
#define XROCE_CM_QPN		 1
#define XROCE_CM_QKEY		 0x80010000u
#define XROCE_CM_ID_BITS	 21
#define XROCE_CM_PLACE(id)	 ((id) >> XROCE_CM_ID_BITS)
#define XROCE_CM_PLACE_OF(client) ((client) + 1)
/* the highest; no client has it */
#define XROCE_CM_PLACE_MAX	 0x7ffu
#define XROCE_CM_PLACE_NONE	 0u /* no CM uses ids with this place */

/*
 * xroce_cm_client (HASH, key: a place): the clients with a QP 1. One of these clients also has the
 * entry XROCE_CM_PLACE_NONE: its CM rejects MADs without an owner. The broker writes, xroce_mux
 * and xroce_egress read.
 */
struct xroce_cm_client {
	__u32 client;		/* key in xroce_client */
	__u32 pid;		/* for readers of a dump */
	__u64 serial;		/* unique among the clients of a broker */
	/* PLACE_NONE: this client must not reject requests for ports below this one */
	__u32 first_port;
	__u32 by_sockets;	/* 1: it sends by its own sockets, not by xroce_egress */
};

/*
 * xroce_service (HASH): the client bound to a service, at one address of the interface or at all
 * addresses of a family (::ffff:0.0.0.0, ::). The broker writes, xroce_mux reads.
 */
#define XROCE_MAX_SERVICE 16384

struct xroce_service_key {
	__u64 id;		/* host order: port space << 16 | port */
	__u8 address[16];
};

struct xroce_service {
	__u32 place;
	__u32 pid;		/* for readers of a dump */
};

/*
 * xroce_asked (LRU_HASH): the client that received a peer's REQ, SIDR_REQ or REP. Retransmissions
 * of a request, and a REJ with only the peer's id, go to the same client. No other client may
 * answer. xroce_mux writes and reads, xroce_egress reads and sets `answered`.
 */
#define XROCE_MAX_ASKED 16384

struct xroce_asked_key {
	__u8 gid[16];		/* the peer's GID */
	__u32 id;		/* the peer's communication id, host order */
	__u32 kind;		/* MAD_REQ, MAD_SIDR_REQ or MAD_REP (bpf/mad.h) */
};

struct xroce_asked {
	__u64 tid;		/* in wire order */
	/* serial of xroce_cm_client; if it differs, another client has the place now */
	__u64 serial;
	__u8 own_gid[16];	/* destination of the request */
	__u32 place;		/* PLACE_NONE: the client that rejects MADs without an owner */
	__u32 qpn;		/* the peer's; 0 for a SIDR_REQ and PLACE_NONE */
	__u32 answered;		/* the client has sent a REP or REJ */
	__u32 pad;
};

/*
 * xroce_unowned (RINGBUF): the frames of MADs without an owner while no client has a QP 1, as
 * struct xroce_rx_record without its CQE. xroce_mux writes, the broker reads and rejects the MADs.
 */
#define XROCE_UNOWNED_BYTES 16384

/*
 * xroce_conn (LRU_HASH, key: the client's communication id, host order): the clients' connections,
 * for the broker to disconnect when a client exits. xroce_egress writes entries from MADs that
 * clients send. xroce_mux writes them from MADs to the sole client, whose frames xroce_egress does
 * not see.
 */
#define XROCE_MAX_CONN 32768

struct xroce_conn {
	__u8 gid[16];		/* the peer's GID */
	__u8 own_gid[16];
	__u64 serial;		/* serial of xroce_cm_client */
	__u32 id;		/* the peer's communication id */
	__u32 qpn;		/* the peer's */
};

/*
 * xroce_members (HASH, key: struct xroce_gid_key): the clients with members of a multicast group;
 * the client with sockets is last. The broker writes, xroce_mux and xroce_egress read. xroce_turn
 * (PERCPU_ARRAY of 1): the clients still to receive the current packet. xroce_mux and the clients'
 * programs write; no client can.
 */
#define XROCE_GROUP_CLIENTS 32
#define XROCE_MAX_MEMBERS   4096 /* groups of all clients */

struct xroce_members {
	__u32 num;
	__u16 client[XROCE_GROUP_CLIENTS];
};

struct xroce_turn {
	__u32 next;		/* index in to.client */
	struct xroce_members to;
};

/*
 * xroce_wire (ARRAY of 1): the interface and the way back into it, for xroce_egress. The broker
 * writes. xroce_neighbour (HASH, key: struct xroce_gid_key): the paths to other interfaces of this
 * network namespace, by GID: the hairpin of an interface with a broker, the next hop of other
 * interfaces.
 */
#define XROCE_MAX_NEIGHBOUR 1024

struct xroce_neighbour {
	__u32 hairpin;		/* its ifindex; 0: through the wire */
	__u8 next_hop[16];	/* for the wire: an IPv6 address, for IPv4 packets too */
};

struct xroce_wire {
	__u32 ifindex;
	/* ifindex of the device with xroce_mux as generic XDP on its ingress */
	__u32 hairpin;
	__u8 mac[6];		/* the interface's, for xroce_single */
	__u8 is_loopback;	/* the interface is lo: no frame leaves the machine */
	__u8 pad;
};

/*
 * xroce_pkey (HASH, key: a P_Key): its index in the port's P_Key table. A client may send only with
 * these P_Keys. The broker writes once, xroce_egress and xroce_single read.
 */
#define XROCE_MAX_PKEY 32

/*
 * xroce_tap (HASH, key: the TAP's ifindex): the client that owns the TAP device, and counters of
 * its frames. The broker writes the first three fields, xroce_egress counts.
 */
struct xroce_tap {
	__u32 client;		/* XROCE_MAX_CLIENT: the broker itself */
	__u32 privileged;	/* may send to QP 1, and use privileged Q_Keys */
	__u32 place;		/* of the client's communication ids */
	__u32 pad;
	__u64 frames;		/* sent to the wire; a super-packet counts as one, */
	__u64 hairpin;		/* sent to QPs on this machine */
	__u64 bytes;		/* sum over both */
	__u64 refused;
};

/*
 * A client's second TAP device is for single frames. Its XDP program, xroce_single, redirects
 * permitted frames to the interface (xroce_out, DEVMAP of 1), without an skb. Other frames pass on
 * to xroce_egress. So do frames with this bit in the first byte of the source MAC, which no
 * sender's MAC has: the kernel routes them and writes the Ethernet header.
 */
#define XROCE_ROUTED 1u

/* Reasons for which xroce_egress rejects a frame, counted in xroce_refused (PERCPU_ARRAY of 1). */
#define XROCE_EGRESS_REASONS(X)                                                                    \
	X(unknown_tap, "from a device that belongs to no client")                                  \
	X(not_roce, "not RoCEv2: EtherType, IP header, UDP port, lengths, opcode")                 \
	X(source, "source address is not one of the interface's")                                  \
	X(multicast, "to a multicast address, but not a datagram to a group")                      \
	X(offload, "requests a checksum or segmentation that RoCEv2 does not use")                 \
	X(segments, "super-packet with unequal packets or a wrong segment size")                   \
	X(qp1, "to QP 1, but not from the sender's QP 1")                                          \
	X(qkey, "a privileged Q_Key")                                                              \
	X(pkey, "P_Key is not in the table")                                                       \
	X(src_qpn, "source QP number is not the sender's")                                         \
	X(no_wire, "to another host, through lo")                                                  \
	X(mtu, "longer than the interface's MTU allows")                                           \
	X(mad, "from QP 1 to QP 1, but not a complete CM MAD")                                     \
	X(mad_id, "MAD with the communication id of another process")                              \
	X(mad_answer, "answer to a MAD that was not for the sender or is no longer known")

enum xroce_egress_reason {
	XROCE_EGRESS_none,
#define X(name, text) XROCE_EGRESS_##name,
	XROCE_EGRESS_REASONS(X)
#undef X
	XROCE_EGRESS_END
};
#define XROCE_EGRESS_COUNT (XROCE_EGRESS_END - 1)

struct xroce_refused {
#define X(name, text) __u64 name;
	XROCE_EGRESS_REASONS(X)
#undef X
};
_Static_assert(sizeof(struct xroce_refused) == XROCE_EGRESS_COUNT * sizeof(__u64),
	       "one counter a reason");

/*
 * The transmit program's maps. The library writes frames (xroce_tx_frame) and their order
 * (xroce_tx_ring: ARRAY of 1, mmapable). It sets the first entry of the batch and runs the program
 * once per live frame. Alternatively it writes several frames to the TAP in one piece and sets
 * their number. The program takes entry `next`, increments `next`, and sends the frame.
 */
#define XROCE_TX_FRAMES	      256
/* room for any frame; an odd number of cache lines, so that frames start in different cache sets */
#define XROCE_TX_FRAME_BYTES  4288
#define XROCE_TX_LIVE_BYTES   3408 /* the longest possible XDP live frame */

struct xroce_tx_entry {
	__u32 frame;		/* key in xroce_tx_frame */
	__u32 len;
};

struct xroce_tx_ring {
	__u32 next;		/* the program increments it */
	__u32 pieces;		/* number of frames in one write to the TAP */
	__u32 cut;		/* bytes of that write sent so far; the program writes */
	__u32 cpu;		/* the only CPU that may send, plus 1; 0: any CPU */
	__u64 refused;		/* entries that the program could not send; the program counts */
	/*
	 * set when the program ran on another CPU; it sends nothing until the library clears this
	 */
	__u32 strayed;
	__u32 pad;
	struct xroce_tx_entry batch[XROCE_TX_FRAMES];
};

/* xroce_tx_frame (ARRAY, mmapable): the library writes, the program reads. */
struct xroce_tx_frame {
	__u8 bytes[XROCE_TX_FRAME_BYTES];
};

/* Map names, as in bpftool (at most 15 characters). */
#define XROCE_MAP_XSK	       "xroce_xsk"
#define XROCE_MAP_QP	       "xroce_qp"
#define XROCE_MAP_CQ	       "xroce_cq"
#define XROCE_MAP_EXPECT       "xroce_expect"
#define XROCE_MAP_CHANNEL      "xroce_channel"
#define XROCE_MAP_ENGINE       "xroce_engine"
#define XROCE_MAP_VECTOR       "xroce_vector"
#define XROCE_MAP_GID	       "xroce_gid"
#define XROCE_MAP_GROUP	       "xroce_group"
#define XROCE_MAP_FLOW	       "xroce_flow"
#define XROCE_MAP_FLOWS	       "xroce_flows"
#define XROCE_MAP_FLOW_COUNT   "xroce_flow_cnt"
#define XROCE_MAP_COPIES       "xroce_copies"
#define XROCE_MAP_DROP	       "xroce_drop"
#define XROCE_MAP_RX	       "xroce_rx"
#define XROCE_MAP_SOCK	       "xroce_sock"
#define XROCE_MAP_ENGINE_STAT  "xroce_eng_stat"
#define XROCE_MAP_ENGINE_DROP  "xroce_eng_drop"
#define XROCE_MAP_RING	       "xroce_ring"
#define XROCE_MAP_OWNER	       "xroce_owner"
#define XROCE_MAP_CLIENT       "xroce_client"
#define XROCE_MAP_CM_CLIENT    "xroce_cm_client"
#define XROCE_MAP_SERVICE      "xroce_service"
#define XROCE_MAP_ASKED	       "xroce_asked"
#define XROCE_MAP_CONN	       "xroce_conn"
#define XROCE_MAP_MEMBERS      "xroce_members"
#define XROCE_MAP_WIRE	       "xroce_wire"
#define XROCE_MAP_TAP	       "xroce_tap"
#define XROCE_MAP_PKEY	       "xroce_pkey"
#define XROCE_MAP_NEIGHBOUR    "xroce_neighbour"
#define XROCE_MAP_REFUSED      "xroce_refused"

#endif
