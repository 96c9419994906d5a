/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * State and counters of a process's objects, for observers: maps that nothing on the data path
 * reads. The owner writes plain words, without locks or atomics; anyone reads, and may see a mix of
 * old and new words.
 *
 * Elements are allocated densely: one in use has a pid. Times are CLOCK_MONOTONIC.
 */
#ifndef XROCE_STAT_H
#define XROCE_STAT_H

#include <xroce/abi.h>

/* Elements of each process's maps: further objects are not shown. */
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

/* Status of a completed work request, with the values of enum ibv_wc_status. */
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
 * Why a QP stopped working: vendor_err of the completion (user/engine/cq.h has the texts),
 * and reasons without a completion.
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
	XROCE_REASON_FAULT_RULE = 19,
	XROCE_REASON_PEER_INVALID = 64,	/* a request of the peer was invalid, */
	XROCE_REASON_PEER_ACCESS = 65,	/* or its key did not permit the access */
	XROCE_REASON_PORT_LOST = 66,	/* the interface was removed, or the broker exited */
};

/*
 * xroce_qp_stat (ARRAY, mmapable): a QP. Its owner engine writes the first cache line for each
 * packet or batch of packets. It writes the rest per event, or when the QP is created or modified.
 * PSNs have 24 bits; bytes count whole Ethernet frames.
 */
struct xroce_qp_stat {
	/* everything that it sent (requests, responses, ACKs, CNPs) and its engine received */
	__u64 tx_packets;
	__u64 tx_bytes;
	__u64 rx_packets;
	__u64 rx_bytes;
	__u32 sq_psn;		/* of the next request to send */
	__u32 unacked_psn;	/* the oldest not acknowledged */
	__u32 rq_psn;		/* the next expected from the peer */
	__u32 msn;		/* complete messages from the peer, 24 bits */
	__u32 outstanding;	/* PSNs sent and not acknowledged */
	__u32 window;		/* limit of outstanding */
	__u32 rtt_ns;		/* smoothed; 0: not measured yet, or not needed */
	__u32 rtt_variation_ns;

	__u32 qpn;
	__u32 pid;		/* 0: the element is free */
	enum xroce_transport transport;
	enum xroce_qp_state state;
	__u32 peer_qpn;		/* connected transports */
	__u32 path_mtu;
	__u32 engine;		/* the owner: key in xroce_eng_stat */
	__u32 pd;
	__u8 local[16];		/* GIDs (IPv4 as ::ffff:a.b.c.d); 0: not connected */
	__u8 peer[16];

	__u32 send_cq;		/* keys in xroce_cq, or XROCE_NO_CQ */
	__u32 recv_cq;
	__u32 srq;		/* number; 0: none */
	__u32 pkey;
	__u64 made_ns;
	__u64 rate_limit;	/* bytes/s, the application's limit; 0: no limit */
	__u64 rate;		/* bytes/s, reduced by CNPs; 0: no limit */
	/* the last error that stopped it: time, completion status, and reason */
	__u64 error_ns;
	enum xroce_status error;
	enum xroce_reason error_reason;
	enum xroce_drop last_drop; /* reason of the last rx_dropped */
	__u32 resent_psn;	/* the oldest request packet at the last retransmission */

	__u64 tx_retransmitted;	/* request packets resent, of tx_packets */
	/* bytes of whole frames: requests sent again, READ responses to duplicates */
	__u64 tx_retransmitted_bytes;
	__u64 timeouts;		/* expiries of the user's timeout */
	__u64 rto_probes;	/* packets resent by the adaptive timeout before that */
	__u64 late_deadlines;	/* timeouts that were noticed late and postponed */
	__u64 tx_sequence_naks;
	__u64 rx_sequence_naks;
	__u64 implied_naks;	/* a response showed that an earlier one is missing */
	__u64 tx_rnr_naks;
	__u64 rx_rnr_naks;
	__u64 remote_errors;	/* fatal NAKs sent */
	__u64 duplicate_requests;
	__u64 rx_held;		/* packets that arrived early and were held until their turn */
	__u64 rx_dropped;	/* of rx_packets: dropped for a reason in xroce_eng_drop, */
	__u64 icrc_errors;	/* of these: wrong ICRC */
	__u64 rx_ce;		/* data packets marked "congestion experienced" */
	__u64 tx_cnps;
	__u64 rx_cnps;
	__u64 credit_waits;	/* messages that waited for the peer's credits */
	__u64 flow_waits;	/* UC and UD: waits for the peer's allowance */
	__u64 rx_writes;	/* requests of the peer executed here, each counted once */
	__u64 rx_reads;
	__u64 rx_atomics;
	__u32 resent_bytes;	/* length of the packet at resent_psn, */
	__u32 resent_times;	/* and how often it was resent in a row */
	__u64 rto_spurious;	/* of rto_probes: the answer was late, nothing was lost */
	__u64 unused[7];
};
_Static_assert(sizeof(struct xroce_qp_stat) % 64 == 0, "whole cache lines");
_Static_assert(__builtin_offsetof(struct xroce_qp_stat, qpn) == 64, "a line for each packet");

/*
 * xroce_cq_stat (ARRAY, mmapable): a CQ that QPs can complete in. The engine that holds the CQ's
 * lock writes, once for all completions of a batch.
 */
struct xroce_cq_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 cq;		/* key in xroce_cq, which has XDP's wake-ups */
	__u32 entries;		/* capacity */
	__u32 waiting;		/* not polled yet */
	__u32 most_waiting;	/* highest value of waiting that the engine saw */
	__u32 overruns;
	__u64 completions;	/* pushed */
	__u64 events;		/* raised because the CQ was armed */
	__u32 vector;
	__u32 has_channel;
	__u64 unused[2];
};
_Static_assert(sizeof(struct xroce_cq_stat) == 64, "a cache line each");

/* xroce_srq_stat (ARRAY, mmapable): an SRQ used by QPs. Written like xroce_cq_stat. */
struct xroce_srq_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 srq;		/* number; 0: not an XRC SRQ */
	__u32 entries;
	__u32 waiting;		/* posted and not taken, as of the last take */
	__u64 taken;		/* receives */
	__u64 limit_events;	/* SRQ_LIMIT_REACHED */
	__u32 pd;
	__u32 xrcd;		/* 0: not an XRC SRQ */
	__u64 unused[3];
};
_Static_assert(sizeof(struct xroce_srq_stat) == 64, "a cache line each");

enum xroce_mr_kind { XROCE_MR_REGION, XROCE_MR_NULL, XROCE_MR_WINDOW_1, XROCE_MR_WINDOW_2 };

/*
 * xroce_mr_stat (ARRAY, mmapable): a memory region with a key, or a window. Written at creation and
 * at each change.
 */
struct xroce_mr_stat {
	__u32 pid;		/* 0: the element is free */
	__u32 key;		/* L_Key and R_Key */
	__u64 addr;		/* in the process */
	__u64 length;		/* bytes; 0 for a window that is not bound */
	__u64 iova;		/* start of the remote addresses */
	__u32 access;		/* of enum ibv_access_flags */
	__u32 pd;
	enum xroce_mr_kind kind;
	__u32 qpn;		/* of a bound type 2 window: the only QP that may use it */
	__u64 unused[2];
};
_Static_assert(sizeof(struct xroce_mr_stat) == 64, "a cache line each");

#define XROCE_MAP_QP_STAT  "xroce_qp_stat"
#define XROCE_MAP_CQ_STAT  "xroce_cq_stat"
#define XROCE_MAP_SRQ_STAT "xroce_srq_stat"
#define XROCE_MAP_MR_STAT  "xroce_mr_stat"

#endif
