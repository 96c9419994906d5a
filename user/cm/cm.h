/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One process's connection manager on a set of interfaces. MADs, time and calls in; MADs, a
 * deadline and events out. It makes no system call, reads no clock, takes no lock, and allocates
 * only in cm_create(). Its owner serialises all calls and connects it with QP1, the verbs and the
 * users.
 *
 * A turn of the owner: cm_input() for each received MAD, cm_expire() once cm_deadline_ns() has
 * passed, or a user's call; then cm_next_event() until it is empty (an event that is not taken
 * holds back MADs that would cause others), and cm_output() until it is empty.
 *
 * A connection (struct cm_conn) also serves SIDR. It has a communication id of this CM's range from
 * creation to end, so that a dispatcher of QP1 knows the process of a MAD from the MAD alone
 * (cm_mad_names()). The owner may use the pointer from the event or call that created the
 * connection until its cm_close(). The CM keeps the connection longer, while the peer may repeat
 * MADs.
 *
 * Calls that return int return 0, or a negative errno:
 *   -EINVAL    the connection's state does not allow the call, or data is longer than the MAD's
 *              private data
 *   -ENOBUFS   no connection or listener is left
 */
#ifndef CM_H
#define CM_H

#include "mad.h"

struct cm;
struct cm_conn;
struct cm_listener;

struct cm_options {
	u64 (*random)(void *arg); /* ids and hashes; cryptographic outside tests */
	void *random_arg;
	/*
	 * Called for each REQ that a listener would get. Returns the reason of the REJ that answers
	 * it instead, or 0. NULL: none is rejected so.
	 */
	u16 (*reject)(void *arg);
	void *reject_arg;
	/* Communication ids: id_count from id_first on, without 0, at least twice the capacity. */
	u32 id_first, id_count;
	u64 ca_guid;
	/* connections at once; when full, kept connections that have ended yield to new ones */
	u32 capacity;
	u32 incoming;	/* the most that peers began; 0: three quarters of capacity */
	u32 half_open;	/* the most of one address that are not completed; 0: a quarter */
	u32 listeners;
};

/* The addresses of a connection's packets. A connection accepts only MADs with these addresses. */
struct cm_path {
	struct gid local, remote;
	u32 interface; /* the owner's number for it; only compared */
	u32 flow_label;
	u8 traffic_class, hop_limit, sl;
	u8 life; /* packet life time, 4.096 us x 2^life: part of the time-outs */
};

enum cm_state {
	CM_IDLE,	/* inactive; waits for cm_close() */
	CM_REQ_SENT,	/* active side, waits for the REP */
	CM_REP_RCVD,	/* active side, waits for cm_ready() */
	CM_REQ_RCVD,	/* passive side, waits for cm_accept() or cm_reject() */
	CM_REP_SENT,	/* passive side, waits for the RTU */
	CM_ESTABLISHED,
	CM_DREQ_SENT,	/* waits for the DREP */
	CM_DREQ_RCVD,	/* waits for cm_disconnect() */
	CM_TIMEWAIT,	/* disconnected; late packets may still arrive */
	CM_REFUSED,	/* ended: the REJ or SIDR_REP is repeated if it was lost */
	CM_SIDR_SENT,	/* waits for the SIDR_REP */
	CM_SIDR_RCVD,	/* waits for cm_sidr_reply() */
	CM_STATE_END
};

enum cm_event_kind {
	CM_EVENT_REQUEST,	/* mad.req: a REQ; conn is new, context the listener's */
	CM_EVENT_REPLY,		/* mad.rep: the REP; call cm_ready() or cm_reject() */
	CM_EVENT_ESTABLISHED,	/* passive side; mad: the RTU, or kind 0 after cm_establish() */
	CM_EVENT_DELAYED,	/* mad.mra: the peer needs longer */
	CM_EVENT_REJECTED,	/* mad.rej */
	CM_EVENT_UNREACHABLE,	/* no answer to a REQ, REP or SIDR_REQ (mad.kind) */
	CM_EVENT_DISCONNECT,	/* mad.dreq: the peer disconnects; call cm_disconnect() */
	/* mad: the DREP, or the peer's DREQ that crossed ours; kind 0: no answer */
	CM_EVENT_DISCONNECTED,
	CM_EVENT_TIMEWAIT_EXIT, /* the QP may be used again */
	CM_EVENT_SIDR_REQUEST,	/* mad.sidr_req; conn is new, context the listener's */
	CM_EVENT_SIDR_REPLY,	/* mad.sidr_rep */
};

struct cm_event {
	enum cm_event_kind kind;
	struct cm_conn *conn;
	struct cm_listener *listener; /* for REQUEST and SIDR_REQUEST, else NULL */
	void *context;
	struct cm_path path;
	struct cm_ip_header ip; /* for REQUEST and SIDR_REQUEST of services with an IP header */
	/* The MAD that caused it. Data of a REQ or SIDR_REQ begins after an IP header. */
	struct cm_mad mad;
};

/* A MAD to be sent from QP1 to QP1. */
struct cm_send {
	struct cm_path path;
	u8 mad[CM_MAD_BYTES];
};

struct cm_stats {
	u64 received[CM_KIND_END]; /* well-formed MADs, by kind */
	u64 dropped[CM_DROP_END];
	u64 sent[CM_KIND_END];
	u64 repeated;	 /* repeats after a time-out, included in sent */
	u64 unsent;	 /* refusals dropped for lack of room */
	u64 gave_up;	 /* requests without an answer */
	u64 made_room;	 /* ended connections that yielded to new ones */
	u32 in_use;	 /* connections, each with its id */
	u32 closed;	 /* of in_use: closed by the owner, kept while the peer may repeat MADs */
	u32 incoming;	 /* of in_use: begun by a peer */
	u32 half_open;	 /* of in_use: not completed */
	u32 peers;	 /* addresses with half-open connections */
};

/* Returns 0, -EINVAL or -ENOMEM. */
int cm_create(const struct cm_options *options, struct cm **out);
/* Frees the CM without sending anything: cm_close() has sent all that was due. */
void cm_destroy(struct cm *cm);

/* ---- listeners ---- */

enum { CM_IPV4 = 1, CM_IPV6 = 2 };

struct cm_service {
	u64 id;
	/*
	 * The requested address, all 0 for any of the families (CM_IPV4, CM_IPV6). A listener with
	 * an address precedes one of a single family, which precedes one of both.
	 */
	struct gid address;
	u8 families;
	u32 backlog; /* most requests before cm_take(); 0: no limit but cm_options' */
	void *context;
};

/* Also -EADDRINUSE: a listener has that service, address and families. */
int cm_listen(struct cm *cm, const struct cm_service *service, struct cm_listener **out);
/* Rejects the requests whose events were not taken; the owner keeps the others. */
void cm_unlisten(struct cm *cm, struct cm_listener *l, u64 now_ns);

/*
 * Marks the request as seen by the user, which makes room in the backlog. cm_accept(), cm_reject(),
 * cm_sidr_reply() and cm_close() do the same.
 */
void cm_take(struct cm *cm, struct cm_conn *conn);

/* ---- connections ---- */

/*
 * Sends a REQ, and repeats it req->max_retries times at intervals of 2 x the path's life plus
 * req->remote_response_timeout. The CM itself sets ca_guid and the primary path of *req, except its
 * ack_timeout. For an IP service data begins with the header (cm_ip_header_put()).
 */
int cm_connect(struct cm *cm, const struct cm_path *path, const struct cm_req *req,
	       const void *data, u32 len, void *context, u64 now_ns, struct cm_conn **out);

/*
 * In CM_REQ_SENT, CM_SIDR_SENT: repeats a request up to `times` times to a peer without a listener,
 * 2 ms after its refusal, then 4, 8 and so on. Only the last refusal is reported. A server that
 * starts to listen slightly late is then found.
 */
void cm_ask_again(struct cm_conn *conn, u8 times);
/* In CM_REQ_RCVD: sends the REP. The CM itself sets ca_guid and failover of *rep. */
int cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_rep *rep, const void *data,
	      u32 len, u64 now_ns);
/* In CM_REP_RCVD: sends the RTU. */
int cm_ready(struct cm *cm, struct cm_conn *conn, const void *data, u32 len, u64 now_ns);
/* In CM_REQ_RCVD, CM_REP_RCVD, CM_REP_SENT: sends a REJ. */
int cm_reject(struct cm *cm, struct cm_conn *conn, const struct cm_rej *rej, const void *data,
	      u32 len, u64 now_ns);
/*
 * In CM_REQ_RCVD, CM_REP_RCVD: sends an MRA, by which the peer waits 4.096 us x 2^service_timeout
 * longer. It is sent again for each repeated REQ or REP.
 */
int cm_delay(struct cm *cm, struct cm_conn *conn, u8 service_timeout, const void *data, u32 len,
	     u64 now_ns);
/* The same without the first MRA: nothing is sent until the peer repeats its MAD. */
int cm_prepare_delay(struct cm *cm, struct cm_conn *conn, u8 service_timeout);
/* In CM_REP_SENT: a packet arrived on the connection, so the peer has sent the RTU. */
int cm_establish(struct cm *cm, struct cm_conn *conn, u64 now_ns);
/* In CM_ESTABLISHED: sends a DREQ. In CM_DREQ_RCVD: sends the DREP. */
int cm_disconnect(struct cm *cm, struct cm_conn *conn, const void *data, u32 len, u64 now_ns);

/* ---- service id resolution, for UD ---- */

/* Sends a SIDR_REQ, as cm_connect() sends a REQ, with these time-outs. */
struct cm_times {
	u8 response_timeout, max_retries;
};
int cm_sidr_request(struct cm *cm, const struct cm_path *path, const struct cm_sidr_req *req,
		    const struct cm_times *times, const void *data, u32 len, void *context,
		    u64 now_ns, struct cm_conn **out);
/* In CM_SIDR_RCVD: sends the SIDR_REP. The CM itself sets service_id of *rep. */
int cm_sidr_reply(struct cm *cm, struct cm_conn *conn, const struct cm_sidr_rep *rep,
		  const void *data, u32 len, u64 now_ns);

/*
 * Closes the connection in any state: sends the MAD that the state requires and drops its events.
 * The pointer is invalid after that.
 */
void cm_close(struct cm *cm, struct cm_conn *conn, u64 now_ns);

enum cm_state cm_conn_state(const struct cm_conn *conn);
u32 cm_conn_id(const struct cm_conn *conn);
/* Returns the time that the QP must rest in CM_TIMEWAIT. */
u64 cm_conn_timewait_ns(const struct cm_conn *conn);
void cm_conn_set_context(struct cm_conn *conn, void *context);

/* ---- MADs, time, events ---- */

/*
 * Handles a received MAD. path has the GIDs and interface of its packet; an answer uses the other
 * fields as well. Returns CM_DROP_none if the MAD was used, else the reason, which is counted.
 */
enum cm_drop cm_input(struct cm *cm, const struct cm_path *path, const void *mad, u32 len,
		      u64 now_ns);
/* Returns the next MAD to be sent; false: none. */
bool cm_output(struct cm *cm, struct cm_send *send);

/* Returns when cm_expire() must be called; NSEC_NEVER: no timer runs. */
u64 cm_deadline_ns(const struct cm *cm);
void cm_expire(struct cm *cm, u64 now_ns);

bool cm_next_event(struct cm *cm, struct cm_event *event);

const struct cm_stats *cm_stats(const struct cm *cm);

/* ---- for a dispatcher of QP1 among several CMs: stateless ---- */

enum cm_names {
	CM_NAMES_ID,	  /* the CM with id in its range */
	CM_NAMES_SERVICE, /* the CM that listens there, or has received that REQ before */
	CM_NAMES_PEER,	  /* no local id: any CM may know the peer's (REJ for a time-out) */
};
enum cm_names cm_mad_names(const struct cm_mad *m, u32 *id, u64 *service_id);

/*
 * Writes the answer to a MAD without an owner into reply: REJ for a REQ or REP, DREP for a DREQ,
 * APR for a LAP, SIDR_REP for a SIDR_REQ. Returns false if none is due.
 */
bool cm_refuse(const struct cm_mad *m, struct cm_mad *reply);

#endif
