/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the XDP program and user space share: fixed-width types only, sizes and offsets asserted.
 *
 * Each struct says who writes and who reads it. `bpftool map dump name xroce_...` prints them by
 * these field names, so names are chosen for that reader.
 */
#ifndef XROCE_ABI_H
#define XROCE_ABI_H

#include <linux/types.h>
#include <xroce/wire.h>

#define XROCE_MAX_QP	   16384
#define XROCE_MAX_CQ	   16384
#define XROCE_NO_CQ	   (~0u) /* XRC: a QP without that CQ */
/* receive queues of an interface, each with a completion vector of its number */
#define XROCE_MAX_QUEUE	   64
#define XROCE_MAX_RING	   64	/* completion channels of a process with a wake-up ring each */
/* wake-up rings: first those of the vectors, then the channels' */
#define XROCE_MAX_CHANNEL  (XROCE_MAX_QUEUE + XROCE_MAX_RING)
/* in place of a key: XDP wakes the service thread of the queue that the packet came by */
#define XROCE_CHANNEL_SERVICE XROCE_MAX_CHANNEL
#define XROCE_MAX_SHARD	   8	/* engines of a device, each with receive queues of its own */
#define XROCE_MAX_GID	   64
#define XROCE_MAX_GROUP	   256	/* multicast groups that a process has members of */
#define XROCE_MAX_FLOW	   256	/* flows of raw packet QPs */
#define XROCE_MAX_COUNTER  256	/* keys of xroce_flow_cnt; 0 is not used */
/* processes with sockets: xroce_xsk holds XROCE_MAX_QUEUE slots for each */
#define XROCE_MAX_OWNER	   16
/* its slot for packets from other processes of the interface */
#define XROCE_LOCAL_XSK	   XROCE_MAX_QUEUE
#define XROCE_RING_BYTES   4096 /* one wake-up ring: a record is 16 bytes with its header */

/*
 * The CQE that XDP writes in front of each redirected packet (bpf_xdp_adjust_meta) and that AF_XDP
 * carries into the UMEM, in the 32 bytes before the RX descriptor's address. XDP writes, the
 * library reads. It is a hint: the packet is checked again.
 */
struct xroce_rx_cqe {
	__u32 qpn;		/* destination QPN */
	__u32 src_qpn;		/* from the DETH, 0 for connected transports */
	/* immediate data or the R_Key to invalidate, as on the wire; see flags */
	__be32 imm;
	__u16 byte_len;		/* payload bytes without pad; as rx_bytes of xroce_qp has them */
	/* VLAN tag (of two, an 802.1Q one in 802.1ad), host order; see flags */
	__u16 vlan_tci;
	__u64 rx_time_ns;	/* CLOCK_MONOTONIC; 0 unless asked for */
	__u8 opcode;		/* BTH opcode */
	__u8 flags;		/* XROCE_RX_* */
	/* IPv4 TOS or IPv6 traffic class: DSCP and ECN; the service level is tos >> 5 */
	__u8 tos;
	/* IP header from the start of the frame: 14, 18 or 22; 0: a frame that a flow takes */
	__u8 l3_offset;
	__u32 flow_tag;		/* hash of source address and UDP source port; 0 unless asked for */
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
	 * several packets, to be cut at its identification's length; all but byte_len is the
	 * first's
	 */
	XROCE_RX_GSO = 1 << 6,
};

/*
 * A UDP super-packet: an IPv4 packet whose UDP payload is that of several packets in a row. Both
 * sides hold it to these limits, so that both count the same packets.
 */
#define XROCE_SEGMENT_MIN  16u	 /* bytes of UDP payload of a packet: a BTH and an ICRC */
#define XROCE_SEGMENT_MAX  4160u /* the largest path MTU and the longest headers */
/* no kernel makes one of more (UDP_MAX_SEGMENTS; 64 in older ones) */
#define XROCE_SEGMENTS_MAX 128u

/*
 * xroce_qp (HASH, key: QPN): where a packet goes. User space replaces a value as a whole when the
 * QP's attributes change, so XDP sees one consistent snapshot. XDP counts in the last four fields;
 * user space carries them over when it replaces a value (a packet that is counted in between is
 * lost to this counter, never to the QP).
 */
struct xroce_qp {
	enum xroce_transport transport;
	__u32 receiving;	/* 1 from RTR on, 0 in RESET, INIT and ERR */
	__u16 pkey;
	/* its completions' reader asked for rx_time_ns, which costs time: else it is 0 */
	__u8 with_time;
	__u8 with_flow_tag;	/* as with_time */
	__u32 qkey;		/* UD only */
	/* own GID (IPv4 as ::ffff:a.b.c.d); zero on UD, which receives on every GID */
	__u8 local[16];
	__u8 peer[16];		/* the only address that packets may come from; zero on UD */
	__u32 send_cq;		/* key in xroce_cq */
	__u32 recv_cq;		/* key in xroce_cq */
	/* key of the owner's first socket in xroce_xsk; add the receive queue */
	__u32 xsk_base;
	__u32 pid;		/* owner, for the reader of a dump */
	__u64 rx_packets;
	/* of payload; of super-packets, as if all had the first one's headers */
	__u64 rx_bytes;
	__u64 rx_dropped;	/* frames for this QP that a check refused; a super-packet is one */
	__u64 wakeups;
};
_Static_assert(sizeof(struct xroce_qp) == 96, "xroce_qp");

/*
 * xroce_cq (ARRAY, mmapable): the arm word of each CQ. User space stores ANY (seq_cst) or exchanges
 * DISARMED for SOLICITED; XDP exchanges it for 0 when a packet will complete work on the CQ, and
 * only the one that took a non-zero value writes the record.
 */
enum { XROCE_CQ_DISARMED = 0, XROCE_CQ_ARMED_ANY = 1, XROCE_CQ_ARMED_SOLICITED = 2 };

struct xroce_cq {
	__u32 armed;		/* user space sets, XDP takes */
	/*
	 * key in xroce_channel; 0 = no completion channel; XROCE_CHANNEL_SERVICE = one without a
	 * ring of its own. User space writes
	 */
	__u32 channel;
	__u64 wakeups;		/* XDP counts */
	/* where a QP that receives to it begins: key in xroce_vector. User space writes */
	__u32 vector;
	__u8 pad[44];		/* a cache line each */
};
_Static_assert(sizeof(struct xroce_cq) == 64, "xroce_cq");

/*
 * xroce_expect (ARRAY of XROCE_MAX_QP, mmapable; key: XROCE_QP_SLOT of the QPN): of QPs whose send
 * CQ has a completion channel, the first PSN whose acknowledgement or response completes something
 * there. User space writes it before the request leaves, XDP reads it.
 */
#define XROCE_QP_SLOT(qpn) ((qpn) % XROCE_MAX_QP)
#define XROCE_EXPECTED	   (1u << 31)

struct xroce_expect {
	__u32 psn;		/* with XROCE_EXPECTED; 0: no response completes anything */
	__u32 pad;
};

/* A service of the connection manager that the process listens to, for `xroce list`. */
struct xroce_listener {
	__u64 service;
	__u8 address[16];	/* that is asked for; 0: any of the families */
	__u32 families;		/* ASK_IPV4, ASK_IPV6; 0: free. Written last, cleared first */
	__u32 pad;
};

#define XROCE_LISTENERS 126	/* what fits into a page, which the map takes anyway */

/* xroce_engine (ARRAY of 1, mmapable): the device. User space writes, XDP reads pid and gid. */
struct xroce_engine {
	__u32 pid;
	__u32 listeners;	/* all of them; those that found room are below */
	/*
	 * one of xroce_gid, the first of the table: most datagrams are to it, and need not be
	 * looked up
	 */
	__u8 gid[16];
	struct xroce_listener listener[XROCE_LISTENERS];
	__u32 traced;	/* XROCE_TRACED: xroce/trace.h */
	__u32 pad;
};
_Static_assert(sizeof(struct xroce_engine) <= 4096, "a page");

/*
 * xroce_vector (ARRAY of XROCE_MAX_QUEUE, mmapable): the receive queues and the completion vectors
 * of the same numbers, which may have a service thread. asleep is set by the thread while it sleeps
 * without the socket and threads of the application sleep on it, and taken by XDP (exchange) when
 * it writes the wake-up record of a packet that came by this queue. While it is watched by threads
 * that sleep on the socket itself and then run the engine, no arm word is taken and no record
 * written: to interrupt the CPU for one takes longer than all else together.
 *
 *	XDP, the packet redirected		the last watcher leaves
 *	watched: count it in unannounced	watched to 0 (full barrier);
 *	(full barrier);				run the engine; fewer of these have
 *	still watched: done;			come than are counted: wait for them,
 *	else take arm words			a moment
 */
struct xroce_vector {
	__u32 asleep;		/* user space sets, XDP takes */
	/* of the thread that is woken for the queue: key in xroce_channel. User space writes */
	__u32 ring;
	__u64 wakeups;		/* for packets of this queue. XDP counts */
	__u64 events;		/* completion events found in its shard. User space counts */
	__u32 tid;		/* the thread; 0: none, another's ring is used. User space writes */
	__u32 watched;		/* by so many threads. User space counts */
	__u64 unannounced;	/* packets redirected without a wake-up record. XDP counts */
	__u8 pad[24];		/* a cache line each */
};
_Static_assert(sizeof(struct xroce_vector) == 64, "xroce_vector");

/*
 * The record in a ring buffer: a hint that the CQ (in a vector's ring: the queue's socket, cq = ~0)
 * may have work.
 */
struct xroce_wakeup {
	__u32 cq;
	__u32 qpn;
};

/*
 * A GID of the interface, key of xroce_gid (HASH, value: __u32 index in the GID table): packets to
 * other addresses are not ours and pass.
 */
struct xroce_gid_key {
	__u8 gid[16];
};

/*
 * xroce_group (HASH, key: struct xroce_gid_key): the multicast groups that QPs of this process are
 * attached to. A packet to such an address and to QP number 0xffffff is ours, whichever of them it
 * is for: the engine says. User space writes the first two, XDP counts. A client of a broker has
 * none: what comes to its program is its own.
 */
struct xroce_group {
	__u32 members;
	__u32 pid;		/* owner, for the reader of a dump */
	__u64 rx_packets;
};

/* What a frame is, by its headers; which of a key's fields are set follows from it. */
enum {
	XROCE_FLOW_MULTICAST = 1 << 0, /* its destination MAC has the group bit */
	XROCE_FLOW_VLAN = 1 << 1,
	XROCE_FLOW_IPV4 = 1 << 2,
	XROCE_FLOW_IPV6 = 1 << 3,
	XROCE_FLOW_UDP = 1 << 4,
	XROCE_FLOW_TCP = 1 << 5,
	XROCE_FLOW_VXLAN = 1 << 6,
	XROCE_FLOW_GRE = 1 << 7,
	XROCE_FLOW_TUNNEL = 1 << 8,   /* one of these two */
	XROCE_FLOW_ETHERNET = 1 << 9, /* inner headers alone: they begin with a MAC header */
	XROCE_FLOW_ESP = 1 << 10,
	XROCE_FLOW_MPLS = 1 << 11, /* right behind the MAC header, or in GRE */
};

/* IPv4 flags of a key, with the values that the kernel gives adapters (enum ib_ipv4_flags). */
enum { XROCE_FLOW_DONT_FRAGMENT = 1 << 1, XROCE_FLOW_MORE_FRAGMENTS = 1 << 2 };

/*
 * What of a frame flows are compared with: fields as they are on the wire but for kinds, 0 where
 * the frame has no such header. flow.h fills it in.
 */
struct xroce_flow_key {
	__u8 dst_mac[6], src_mac[6];
	__be16 ether_type;	/* behind the tags */
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
 * What lies behind the headers of a key that is of kind XROCE_FLOW_TUNNEL: flows without that kind
 * are not compared with it.
 */
struct xroce_flow_tunnel {
	__be32 id;		/* VXLAN: the VNI; GRE: the key, 0 without one */
	__be16 gre_flags, gre_protocol;
	struct xroce_flow_key inner; /* without MACs if the frame in it has none */
};
_Static_assert(sizeof(struct xroce_flow_tunnel) == 80, "whole words, none padded");

/*
 * xroce_flow (ARRAY of 2 * XROCE_MAX_FLOW): the flows of raw packet QPs, in the order that frames
 * are compared with them, in one half of the map; xroce_flows (ARRAY of 1) says in which. User
 * space writes the other half and then moves the generation, so that XDP finds each order whole.
 * XDP goes through them for frames that are no RoCEv2 packets for this device, and through those
 * that have copies alone for packets that are. It redirects or drops what one of them takes, copies
 * what others match before that, and counts it; for which QPs it is, the engine says, which
 * compares again.
 */
struct xroce_flow {
	struct xroce_flow_key value, mask;
	__u32 qpn;		/* whose CQ is woken: of several flows, the first one's */
	/*
	 * the smaller comes first; flows of one order each have a copy, and only all of them have
	 * XROCE_FLOW_COPY
	 */
	__u32 order;
	__u32 actions;		/* XROCE_FLOW_* */
	__u32 counter;		/* key in xroce_flow_cnt; 0: it is not counted */
	struct xroce_flow_tunnel tunnel_value, tunnel_mask;
};
_Static_assert(sizeof(struct xroce_flow) == 320, "xroce_flow");

enum {
	XROCE_FLOW_DROP = 1 << 0,      /* what it takes is dropped */
	XROCE_FLOW_MORE_COUNT = 1 << 1, /* so do flows behind it, of its order */
	XROCE_FLOW_COPY = 1 << 2,	/* it has a copy, and the frame goes on */
};

/*
 * xroce_copies (ARRAY_OF_MAPS of 1): the ring buffer for copies of frames that flows with
 * XROCE_FLOW_COPY match, which then go on as if there were none: made when the first such flow is,
 * and read to the process's end. XDP writes struct xroce_rx_record, with a CQE that has the time,
 * the kind in place of the opcode, and of a RoCEv2 packet for this device XROCE_RX_GSO and the IP
 * header's offset. What flows redirect to the socket is not there: the engine makes those copies.
 */
#define XROCE_COPY_RING_BYTES (4u << 20)

enum {
	XROCE_COPY_OTHER = 1, /* it passed to the kernel, or a flow dropped it */
	XROCE_COPY_OWN = 2,   /* a RoCEv2 packet for this device, whatever became of it */
};

/*
 * xroce_flow_cnt (PERCPU_ARRAY of XROCE_MAX_COUNTER): the frames that flows with a counter have
 * taken. XDP counts, each CPU its own; frames that do not pass XDP, from our own QPs, the engine
 * counts elsewhere. It is never cleared: who is given a key takes off what is there.
 */
struct xroce_flow_count {
	__u64 packets;
	__u64 bytes;		/* of whole frames, without their FCS */
};

struct xroce_flows {
	__u32 generation;	/* the half that counts is its last bit's */
	__u32 num[2];		/* flows in each half */
	/* bytes of the longest frame that a flow takes: what the interface's MTU allows */
	__u32 longest;
};

#define XROCE_FLOW_HALF(generation) ((generation)&1)

/*
 * Why a packet was dropped: one line makes the enum, the counter's field and its text. The first
 * part is decided in XDP and counted in xroce_drop (PERCPU_ARRAY of 1); the second by the engines,
 * counted in xroce_eng_drop (ARRAY of XROCE_MAX_SHARD, mmapable, an element each). Both maps have
 * the same struct as their value, so a reason may move or be checked on both sides.
 *
 * A function that decides on a packet, in XDP as in the library, returns an enum xroce_drop: the
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
	X(pad, "pad count does not fit the payload, or payload where there can be none")           \
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
	X(cnp, "congestion notification that no packet of ours can have caused")                   \
	X(multibuffer, "frame in more buffers than any packet of ours needs")                      \
	X(descriptor, "AF_XDP descriptor that names no buffer of ours")                            \
	X(not_handed, "for a QP of another engine, to which it was not handed over")               \
	X(mad, "to QP 1 of a shared interface, and not a whole MAD of the CM")                     \
	X(mad_port, "MAD for a privileged port that no process has, and none may answer for")     \
	X(flow, "frame that no flow takes any more")                                               \
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
#define XROCE_DROP_COUNT (XROCE_DROP_END - 1) /* reasons, and so counters */
/* The place of a reason's counter in struct xroce_drops, taken as an array. */
#define XROCE_DROP_INDEX(reason) ((__u32)(reason)-1)

struct xroce_drops {
#define X(name, text) __u64 name;
	XROCE_DROP_REASONS(X)
#undef X
	__u64 unused[8 - XROCE_DROP_COUNT % 8]; /* each engine's in cache lines of their own */
};
_Static_assert(__builtin_offsetof(struct xroce_drops, unused) == XROCE_DROP_COUNT * sizeof(__u64),
	       "one counter a reason");
_Static_assert(sizeof(struct xroce_drops) % 64 == 0, "whole cache lines");

/* xroce_rx (PERCPU_ARRAY of 1): what XDP did with the device's packets. */
struct xroce_rx_stats {
	__u64 redirected;	/* to an AF_XDP socket */
	__u64 redirected_bytes; /* of whole frames */
	__u64 dropped;
	__u64 passed;		/* RoCEv2 by port, but not to one of our GIDs */
	__u64 cq_wakeups;
	__u64 engine_wakeups;
	__u64 super_packets;	/* of redirected: UDP super-packets that nothing had cut yet */
	__u64 super_segments;	/* RoCEv2 packets in these */
	__u64 copied;		/* frames of which xroce_copies has a copy, */
	__u64 copies_lost;	/* or has not, as they found no room there or were too long */
};

/*
 * xroce_sock (ARRAY of XROCE_MAX_QUEUE, mmapable): what became of the frames that XDP redirected to
 * the AF_XDP socket of each receive queue. The library writes, anyone reads. Of all queues
 * together, and with what lies in the receive rings at the moment,
 *
 *	redirected (xroce_rx) = rx_frames + rx_ring_full + rx_dropped + rx_left
 *
 * and of what was taken every packet is an engine's, used or dropped for a counted reason:
 *
 *	rx_frames - rx_super_packets + rx_super_segments =
 *		rx_packets - loopback_packets (xroce_eng_stat)
 *
 * A process that receives by xroce_ring counts in the first queue's: redirected are the frames that
 * XDP has written to the ring, rx_ring_full and rx_dropped stay 0, and what the ring has no room
 * for XDP drops (ring_full of xroce_drop).
 */
struct xroce_sock {
	__u64 rx_frames;	/* taken from the receive ring */
	__u64 rx_super_packets;	/* of these, cut: */
	__u64 rx_super_segments; /* into so many packets */
	__u64 rx_left;		/* lay in the receive ring when the socket was closed */
	/*
	 * The socket's XDP_STATISTICS, read again 100 ms after packets have come, and when it is
	 * closed.
	 */
	__u64 rx_ring_full;	/* frames that were lost: the receive ring had no room */
	/* frames that were lost: no buffer to receive into, or too long for this kernel */
	__u64 rx_dropped;
	__u64 rx_fill_ring_empty; /* times that the kernel found no buffer */
	__u64 rx_invalid_descs;	/* buffers that the kernel refused */
	__u64 tx_invalid_descs;	/* frames to send that it refused */
	__u64 tx_ring_empty;	/* times that it found no frame to send */
	__u64 unused[6];
};
_Static_assert(sizeof(struct xroce_sock) == 128, "each queue's in cache lines of their own");

/*
 * xroce_eng_stat (ARRAY of XROCE_MAX_SHARD, mmapable): what each engine did. The engine writes,
 * anyone reads, and adds up what it reads.
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
	/* of whole frames: requests sent again, READ responses to duplicates */
	__u64 tx_retransmitted_bytes;
	__u64 rx_held;		/* packets that came early and were kept until their turn */
	__u64 rto_probes;	/* packets sent again by the adaptive time-out, before the user's */
	__u64 credit_waits;	/* messages that waited for the peer's credits */
	__u64 rx_ce;		/* data packets marked "congestion experienced" */
	__u64 tx_cnps;
	__u64 rx_cnps;
	__u64 tx_xsk;		/* frames by the way they left: through the AF_XDP socket, */
	__u64 tx_tap;		/* the TAP device, */
	__u64 tx_live;		/* as XDP live frames; */
	__u64 tx_lost;		/* and those that the kernel refused */
	/* frames that may be redirected in 50 us: now, not in all; the largest is no limit */
	__u64 tx_pacer;
	__u64 tx_slowed;	/* times that this was halved, as the interface had lost frames */
	__u64 tx_tap_writes;	/* system calls for tx_tap */
	__u64 tx_live_runs;	/* and for tx_live */
	/* frames that left through the packet socket, or to the TAP device in super-packets, */
	__u64 tx_gso;
	__u64 tx_gso_sends;	/* and in how many packets: super-packets, and frames alone */
	/* frames for QPs that another shard owns: handed over to it */
	__u64 rx_handed;
	__u64 qps_moved;	/* QPs that have moved here, where their packets arrive */
	__u64 flow_probes;	/* UC and UD: asked what the receiver can take, */
	__u64 flow_answers;	/* said what this one can, */
	__u64 flow_waits;	/* times that a QP waited for that */
	/* times that super-packets were, as the interface refused or dropped them */
	__u64 tx_gave_up;
	__u64 late_deadlines;	/* time-outs that were noticed late and put off */
	/* requests of peers that were executed here, each once however often it was sent: */
	__u64 rx_writes;	/* RDMA WRITE, of UC too, with immediate data or not */
	__u64 rx_reads;		/* RDMA READ: a long one may come as several requests */
	__u64 rx_atomics;	/* compare and swap, fetch and add */
	/* work requests that ended in error; of sends, each for the reason of the error first */
	__u64 req_errors;
	__u64 req_retry_exceeded;
	__u64 req_rnr_exceeded;
	__u64 req_remote_access; /* the peer refused the access, */
	__u64 req_remote_invalid; /* the request, */
	__u64 req_remote_operation; /* or could not execute it */
	__u64 req_flushed;	/* sends and */
	__u64 resp_flushed;	/* receives that were flushed */
	__u64 resp_errors;	/* receives that ended in error */
	__u64 resp_length;	/* of these: shorter than the message */
	__u64 resp_access;	/* QPs that a peer's request stopped: without the right, */
	__u64 resp_invalid;	/* or none that there is */
	__u64 tx_copies_lost;	/* of what was sent, for flows and groups here: no room for one */
	/* each engine's in cache lines of their own; a further counter takes from here */
	__u64 rto_spurious;	/* of rto_probes: the answer was late, and nothing lost */
	__u64 unused[6];
};
_Static_assert(sizeof(struct xroce_engine_stats) % 64 == 0, "whole cache lines");

/*
 * Several processes on one interface: each has this program and these maps for itself, and a
 * process that did not attach them receives by a ring buffer (xroce_ring), not by AF_XDP. XDP
 * writes a record for each packet: the CQE, the frame's length, the frame. It is a hint as ever:
 * the reader can change what it has not yet read, and nothing of another's.
 */
#define XROCE_RX_RING_BYTES (4u << 20)

struct xroce_rx_record {
	struct xroce_rx_cqe cqe;
	__u32 len;		/* of the frame; a super-packet's may be up to 64 KiB */
	__u32 pad;
	__u8 frame[];
};
_Static_assert(sizeof(struct xroce_rx_record) == 40, "xroce_rx_record");

/*
 * What the broker alone has: the program in front of the others' (xroce_mux) and the one behind
 * each client's TAP device (xroce_egress), with an xroce_gid, xroce_engine, xroce_rx and xroce_drop
 * of their own.
 *
 * xroce_owner (HASH, key: QPN): whose it is. The broker writes, both programs read.
 */
#define XROCE_MAX_CLIENT 1024
#define XROCE_MAX_TAP	 (2 * XROCE_MAX_CLIENT + 1) /* a client's devices, and the broker's own */
#define XROCE_MAX_OWNED	 65536 /* QPNs of all clients together */

struct xroce_owner {
	__u32 client;		/* key in xroce_client, the PROG_ARRAY of the clients' programs */
	__u32 pid;		/* for the reader of a dump */
};

/*
 * QP 1 and the connection manager (CM): each client may have a QP 1, and xroce_mux finds from a MAD
 * which of them it is for. The upper bits of a communication id are its owner's place, the lower
 * ones are drawn by the owner.
 */
#define XROCE_CM_QPN		 1
#define XROCE_CM_QKEY		 0x80010000u
#define XROCE_CM_ID_BITS	 21
#define XROCE_CM_PLACE(id)	 ((id) >> XROCE_CM_ID_BITS)
#define XROCE_CM_PLACE_OF(client) ((client) + 1)
/* of a process that is alone on the interface, or has been, before it had to share it */
#define XROCE_CM_PLACE_FIRST	 0x7ffu
#define XROCE_CM_PLACE_NOBODY	 0u /* of no id that a CM draws */

/*
 * xroce_place (HASH, key: a place): the clients that have a QP 1. XROCE_CM_PLACE_NOBODY is one of
 * these once more: its CM refuses what is nobody's. The broker writes, xroce_mux and xroce_egress
 * read.
 */
struct xroce_place {
	__u32 client;		/* key in xroce_client */
	__u32 pid;		/* for the reader of a dump */
	__u64 serial;		/* no two clients of a broker have the same */
	/* of PLACE_NOBODY: requests for ports below that are not for this client to refuse */
	__u32 first_port;
	__u32 pad;
};

/*
 * xroce_service (HASH): the client bound to a service, at one address of the interface or at all
 * of a family (::ffff:0.0.0.0, ::). The broker writes, xroce_mux reads.
 */
#define XROCE_MAX_SERVICE 16384

struct xroce_service_key {
	__u64 id;		/* host order: port space << 16 | port */
	__u8 address[16];
};

struct xroce_service {
	__u32 place;
	__u32 pid;		/* for the reader of a dump */
};

/*
 * xroce_asked (LRU_HASH): the client that was handed a peer's REQ, SIDR_REQ or REP. Repetitions of
 * a request, and a REJ that names the peer's id alone, are for the same client. No other client may
 * answer. xroce_mux writes and reads, xroce_egress reads and sets `answered`.
 */
#define XROCE_MAX_ASKED 16384

struct xroce_asked_key {
	__u8 gid[16];		/* the peer's, */
	__u32 id;		/* and its communication id, host order */
	__u32 kind;		/* MAD_REQ, MAD_SIDR_REQ or MAD_REP (bpf/mad.h) */
};

struct xroce_asked {
	__u64 tid;		/* as on the wire */
	__u64 serial;		/* of xroce_place: another's has taken the place if they differ */
	__u8 own_gid[16];	/* that was asked */
	__u32 place;		/* PLACE_NOBODY: of the client that refuses what is nobody's */
	__u32 qpn;		/* the peer's; 0 of a SIDR_REQ and of PLACE_NOBODY */
	__u32 answered;		/* the client has sent a REP or REJ */
	__u32 pad;
};

/*
 * xroce_nobody (RINGBUF): the frames of MADs that are nobody's while no client has a QP 1, as
 * struct xroce_rx_record without its CQE. xroce_mux writes, the broker reads and refuses them.
 */
#define XROCE_NOBODY_BYTES 16384

/*
 * xroce_conn (LRU_HASH, key: the client's communication id, host order): connections that clients
 * have, by which the broker ends those of a client that has gone. xroce_egress writes what a client
 * says, and xroce_mux what the first client is told, whose frames xroce_egress does not see.
 */
#define XROCE_MAX_CONN 32768

struct xroce_conn {
	__u8 gid[16];		/* the peer's */
	__u8 own_gid[16];
	__u64 serial;		/* of xroce_place */
	__u32 id;		/* the peer's communication id */
	__u32 qpn;		/* the peer's */
};

/*
 * xroce_members (HASH, key: struct xroce_gid_key): the clients with members of a multicast group,
 * the one with sockets last. The broker writes, xroce_mux and xroce_egress read. xroce_turn
 * (PERCPU_ARRAY of 1): whose turn it is with a packet. xroce_mux and the clients' programs write;
 * no client can.
 */
#define XROCE_GROUP_CLIENTS 32
#define XROCE_MAX_MEMBERS   4096 /* groups of all clients */

struct xroce_members {
	__u32 num;
	__u16 client[XROCE_GROUP_CLIENTS];
};

struct xroce_turn {
	__u32 next;		/* of to */
	struct xroce_members to;
};

/*
 * xroce_wire (ARRAY of 1): the interface and the way back into it, for xroce_egress. The broker
 * writes. xroce_near (HASH, key: struct xroce_gid_key) has the ways to other interfaces of this
 * network namespace, by their GIDs: the hairpin of each that has a broker, the next hop of others.
 */
#define XROCE_MAX_NEAR 1024

struct xroce_near {
	__u32 hairpin;		/* its number as an interface; 0: by the wire */
	__u8 next_hop[16];	/* by the wire: an IPv6 address, whatever the packet is */
};

struct xroce_wire {
	__u32 ifindex;
	__u32 hairpin;		/* the device on whose ingress xroce_mux runs as generic XDP */
	__u8 mac[6];		/* the interface's, for xroce_single */
	__u8 is_loopback;	/* it is lo, by which nothing leaves */
	__u8 pad;
};

/*
 * xroce_pkey (HASH, key: a P_Key): its index in the port's P_Key table. A client sends with no
 * other. The broker writes once, xroce_egress and xroce_single read.
 */
#define XROCE_MAX_PKEY 32

/*
 * xroce_tap (HASH, key: the TAP's ifindex): the client that sends by it, and what it has sent. The
 * broker writes the first three, xroce_egress counts.
 */
struct xroce_tap {
	__u32 client;		/* XROCE_MAX_CLIENT: the broker itself */
	__u32 privileged;	/* may send to QP 1, and with privileged Q_Keys */
	__u32 place;		/* of its communication ids */
	__u32 pad;
	__u64 frames;		/* sent, super-packets as one: to the wire, */
	__u64 hairpin;		/* and to QPs on this machine */
	__u64 bytes;		/* of both */
	__u64 refused;
};

/*
 * A client's second TAP device is for single frames, and its XDP program, xroce_single, redirects
 * to the interface (xroce_out, DEVMAP of 1) what may leave, without an skb. With this bit in the
 * first byte of the source MAC (no sender's own has it) a frame goes on to xroce_egress instead, as
 * does whatever the program does not let through: the kernel routes that and writes the Ethernet
 * header.
 */
#define XROCE_ROUTED 1u

/*
 * Why xroce_egress refuses a frame, counted in xroce_refused (PERCPU_ARRAY of 1), a field each.
 */
#define XROCE_EGRESS_REASONS(X)                                                                    \
	X(unknown_tap, "from a device that is no client's")                                        \
	X(not_roce, "not RoCEv2: EtherType, IP header, UDP port, lengths, opcode")                 \
	X(source, "source address is not one of the interface's")                                  \
	X(multicast, "to a multicast address, and no datagram to a group")                         \
	X(offload, "asks the kernel for a checksum or for segments that RoCEv2 has not")           \
	X(segments, "super-packet whose packets are not alike, or not cut as it says")             \
	X(qp1, "to QP 1, and not from the sender's QP 1")                                          \
	X(qkey, "a privileged Q_Key")                                                              \
	X(pkey, "a P_Key that is not in the table")                                                \
	X(src_qpn, "source QP number is not the sender's")                                         \
	X(no_wire, "to another host, by lo")                                                       \
	X(mtu, "longer than the interface takes")                                                  \
	X(mad, "from QP 1 to QP 1, and not a whole MAD of the CM")                                 \
	X(mad_id, "MAD with the communication id of another process")                              \
	X(mad_answer, "answer to a MAD that was not for the sender, or is forgotten")

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
 * (xroce_tx_ring: ARRAY of 1, mmapable). Then it says where in the batch to begin and has the
 * program run once for each live frame; or it writes several frames to the TAP in one piece and
 * says how many. The program takes entry next, moves next, and sends the frame.
 */
#define XROCE_TX_FRAMES	      256
/*
 * holds any frame; an odd number of cache lines, so that frames do not all begin in the same cache
 * set
 */
#define XROCE_TX_FRAME_BYTES  4288
#define XROCE_TX_LIVE_BYTES   3408 /* the longest that an XDP live frame can be */

struct xroce_tx_entry {
	__u32 frame;		/* key in xroce_tx_frame */
	__u32 len;
};

struct xroce_tx_ring {
	__u32 next;		/* the program moves it */
	__u32 pieces;		/* frames in what is written to the TAP */
	__u32 cut;		/* bytes of that which have been sent; the program moves it */
	__u32 cpu;		/* the only one that frames may leave by, + 1; 0: any */
	__u64 refused;		/* entries that the program could not send; it counts */
	/* it ran on another, and has sent nothing since. The library clears it */
	__u32 strayed;
	__u32 pad;
	struct xroce_tx_entry batch[XROCE_TX_FRAMES];
};

/* xroce_tx_frame (ARRAY, mmapable): the library writes, the program reads. */
struct xroce_tx_frame {
	__u8 bytes[XROCE_TX_FRAME_BYTES];
};

/* Map names, as bpftool shows them (at most 15 characters). */
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
#define XROCE_MAP_PLACE	       "xroce_place"
#define XROCE_MAP_SERVICE      "xroce_service"
#define XROCE_MAP_ASKED	       "xroce_asked"
#define XROCE_MAP_CONN	       "xroce_conn"
#define XROCE_MAP_MEMBERS      "xroce_members"
#define XROCE_MAP_WIRE	       "xroce_wire"
#define XROCE_MAP_TAP	       "xroce_tap"
#define XROCE_MAP_PKEY	       "xroce_pkey"
#define XROCE_MAP_NEAR	       "xroce_near"
#define XROCE_MAP_REFUSED      "xroce_refused"

#endif
