/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process's objects are and have done, for who looks into it: maps that nothing on the data
 * path reads. Their owner writes plain words, without locks or atomics, as it goes; anyone reads,
 * and may see a word of now beside one of a moment ago.
 *
 * Elements are handed out densely: one in use has a pid. Times are CLOCK_MONOTONIC.
 */
#ifndef XROCE_STAT_H
#define XROCE_STAT_H

#include <xroce/abi.h>

/* Elements of the maps that each process has: so many objects are seen, and no more. */
#define XROCE_QP_STATS	512
#define XROCE_CQ_STATS	512
#define XROCE_SRQ_STATS 128
#define XROCE_MR_STATS	512

/* QP states, with the values of enum ibv_qp_state. */
enum xroce_qp_state {
	XROCE_QPS_RESET,
	XROCE_QPS_INIT,
	XROCE_QPS_RTR,
	XROCE_QPS_RTS,
	XROCE_QPS_SQD,
	XROCE_QPS_SQE,
	XROCE_QPS_ERR,
};

/* How a work request ended, with the values of enum ibv_wc_status. */
enum xroce_status {
	XROCE_STATUS_SUCCESS = 0,
	XROCE_STATUS_LOC_LEN_ERR = 1,
	XROCE_STATUS_LOC_QP_OP_ERR = 2,
	XROCE_STATUS_LOC_PROT_ERR = 4,
	XROCE_STATUS_WR_FLUSH_ERR = 5,
	XROCE_STATUS_MW_BIND_ERR = 6,
	XROCE_STATUS_BAD_RESP_ERR = 7,
	XROCE_STATUS_LOC_ACCESS_ERR = 8,
	XROCE_STATUS_REM_INV_REQ_ERR = 9,
	XROCE_STATUS_REM_ACCESS_ERR = 10,
	XROCE_STATUS_REM_OP_ERR = 11,
	XROCE_STATUS_RETRY_EXC_ERR = 12,
	XROCE_STATUS_RNR_RETRY_EXC_ERR = 13,
	XROCE_STATUS_TM_ERR = 22,
	XROCE_STATUS_TM_RNDV_INCOMPLETE = 23,
};

/*
 * Why a QP stopped working: the numbers of vendor_err that a completion would have
 * (user/engine/vendor_err.h, which has their texts), and what no completion tells.
 */
enum xroce_reason {
	XROCE_REASON_NONE = 0,
	XROCE_REASON_FLUSHED = 1,
	XROCE_REASON_LKEY = 2,
	XROCE_REASON_TIMEOUT = 3,
	XROCE_REASON_SEQUENCE_RETRY = 4,
	XROCE_REASON_RNR = 5,
	XROCE_REASON_NAK_INVALID_REQUEST = 6,
	XROCE_REASON_NAK_REMOTE_ACCESS = 7,
	XROCE_REASON_NAK_REMOTE_OPERATION = 8,
	XROCE_REASON_BAD_RESPONSE = 9,
	XROCE_REASON_RECV_TOO_SHORT = 10,
	XROCE_REASON_TOO_LONG = 11,
	XROCE_REASON_REMOTE_ACCESS_HERE = 12,
	XROCE_REASON_CQ_OVERRUN = 13,
	XROCE_REASON_INVALIDATE = 14,
	XROCE_REASON_TAG_CONSUMED = 15,
	XROCE_REASON_RENDEZVOUS = 16,
	XROCE_REASON_MEMORY = 17,
	XROCE_REASON_REQUEST = 18,
	XROCE_REASON_PEER_INVALID = 64,	/* a request of the peer's was invalid, */
	XROCE_REASON_PEER_ACCESS = 65,	/* or asked for what its key does not open */
	XROCE_REASON_PORT_LOST = 66,	/* the interface has gone, or its broker */
};

/*
 * xroce_qp_stat (ARRAY, mmapable): a QP. Its owner engine writes at each packet, or for a row of
 * them, what is in the first line of cache, the rest as it happens or when the QP is made or
 * modified. PSNs are of 24 bits; bytes are of whole Ethernet frames.
 */
struct xroce_qp_stat {
	/* all that it sent: requests, responses, ACKs, CNPs; and all that came to its engine */
	__u64 tx_packets;
	__u64 tx_bytes;
	__u64 rx_packets;
	__u64 rx_bytes;
	__u32 sq_psn;		/* of the next request to be sent */
	__u32 unacked_psn;	/* the oldest that is not acknowledged */
	__u32 rq_psn;		/* the next that is expected of the peer */
	__u32 msn;		/* messages of the peer's that are complete, 24 bits */
	__u32 outstanding;	/* PSNs sent and not acknowledged */
	__u32 window;		/* so many may be */
	__u32 rtt_ns;		/* smoothed; 0: not measured yet, or not needed */
	__u32 rtt_variation_ns;

	__u32 qpn;
	__u32 pid;		/* 0: the element is free */
	enum xroce_transport transport;
	enum xroce_qp_state state;
	__u32 peer_qpn;		/* connected transports */
	__u32 path_mtu;
	__u32 engine;		/* its owner: key in xroce_eng_stat */
	__u32 pd;
	__u8 local[16];		/* GIDs (IPv4 as ::ffff:a.b.c.d); 0: not connected */
	__u8 peer[16];

	__u32 send_cq;		/* keys in xroce_cq, or XROCE_NO_CQ */
	__u32 recv_cq;
	__u32 srq;		/* number; 0: none */
	__u32 pkey;
	__u64 made_ns;
	__u64 rate_limit;	/* bytes/s that the application allows; 0: no limit */
	__u64 rate;		/* bytes/s that notifications of congestion leave; 0: no limit */
	/* the last error that stopped it: when, what a completion says, and why */
	__u64 error_ns;
	enum xroce_status error;
	enum xroce_reason error_reason;
	enum xroce_drop last_drop; /* of rx_dropped, the last one's */
	__u32 resent_psn;	/* the oldest request packet when it was sent again last, */

	__u64 tx_retransmitted;	/* request packets sent again, of tx_packets */
	/* of whole frames: requests sent again, READ responses to duplicates */
	__u64 tx_retransmitted_bytes;
	__u64 timeouts;		/* the user's time-outs; */
	__u64 rto_probes;	/* packets sent again by the adaptive one before that; */
	__u64 late_deadlines;	/* those that were noticed late and put off */
	__u64 tx_sequence_naks;
	__u64 rx_sequence_naks;
	__u64 implied_naks;	/* a response showed that one before it is missing */
	__u64 tx_rnr_naks;
	__u64 rx_rnr_naks;
	__u64 remote_errors;	/* fatal NAKs sent */
	__u64 duplicate_requests;
	__u64 rx_held;		/* packets that came early and were kept until their turn */
	__u64 rx_dropped;	/* of rx_packets: not used, for a reason of xroce_eng_drop; */
	__u64 icrc_errors;	/* for a wrong ICRC */
	__u64 rx_ce;		/* data packets marked "congestion experienced" */
	__u64 tx_cnps;
	__u64 rx_cnps;
	__u64 credit_waits;	/* messages that waited for the peer's credits */
	__u64 flow_waits;	/* UC and UD: times that it waited for what the peer can take */
	__u64 rx_writes;	/* requests of the peer's that were executed, each once */
	__u64 rx_reads;
	__u64 rx_atomics;
	__u32 resent_bytes;	/* its frame, */
	__u32 resent_times;	/* and how often by then */
	__u64 rto_spurious;	/* of rto_probes: the answer was late, and nothing lost */
	__u64 unused[7];
};
_Static_assert(sizeof(struct xroce_qp_stat) % 64 == 0, "whole cache lines");
_Static_assert(__builtin_offsetof(struct xroce_qp_stat, qpn) == 64, "a line for each packet");

/*
 * xroce_cq_stat (ARRAY, mmapable): a CQ that QPs can complete in. The engine writes once for all
 * completions of a batch; of several engines the one that holds the CQ's lock.
 */
struct xroce_cq_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 cq;		/* key in xroce_cq, which has XDP's wake-ups */
	__u32 entries;		/* room */
	__u32 waiting;		/* not polled yet, */
	__u32 most_waiting;	/* and the most that ever were, when the engine looked */
	__u32 overruns;
	__u64 completions;	/* pushed */
	__u64 events;		/* raised, as it was armed */
	__u32 vector;
	__u32 has_channel;
	__u64 unused[2];
};
_Static_assert(sizeof(struct xroce_cq_stat) == 64, "a cache line each");

/* xroce_srq_stat (ARRAY, mmapable): an SRQ with QPs on it. Written as xroce_cq_stat. */
struct xroce_srq_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 srq;		/* number; 0: it has none, as no XRC SRQ */
	__u32 entries;
	__u32 waiting;		/* posted and not taken, when one was taken last */
	__u64 taken;		/* receives */
	__u64 limit_events;	/* SRQ_LIMIT_REACHED */
	__u32 pd;
	__u32 xrcd;		/* 0: no XRC SRQ */
	__u64 unused[3];
};
_Static_assert(sizeof(struct xroce_srq_stat) == 64, "a cache line each");

enum xroce_mr_kind { XROCE_MR_REGION, XROCE_MR_NULL, XROCE_MR_WINDOW_1, XROCE_MR_WINDOW_2 };

/*
 * xroce_mr_stat (ARRAY, mmapable): a region of memory that a key opens, or a window. Written when
 * it is made or changed.
 */
struct xroce_mr_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 key;		/* L_Key and R_Key */
	__u64 addr;		/* in the process */
	__u64 length;		/* bytes; of a window 0: it is not bound */
	__u64 iova;		/* what remote addresses begin at */
	__u32 access;		/* of enum ibv_access_flags */
	__u32 pd;
	enum xroce_mr_kind kind;
	__u32 qpn;		/* of a bound window of type 2: the QP that it opens for */
	__u64 unused[2];
};
_Static_assert(sizeof(struct xroce_mr_stat) == 64, "a cache line each");

#define XROCE_MAP_QP_STAT  "xroce_qp_stat"
#define XROCE_MAP_CQ_STAT  "xroce_cq_stat"
#define XROCE_MAP_SRQ_STAT "xroce_srq_stat"
#define XROCE_MAP_MR_STAT  "xroce_mr_stat"

#endif
