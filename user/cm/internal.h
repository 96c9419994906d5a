/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Declarations shared by the CM's files. State is grouped by the file that owns it. */
#ifndef CM_INTERNAL_H
#define CM_INTERNAL_H

#include "../engine/timer_heap.h"
#include "cm.h"

/* Bounds of times that peers may ask for. */
#define CM_WAIT_MAX_NS (30 * NSEC_PER_SEC) /* for an MRA and for time-wait */
#define CM_REFUSED_MAX_NS (120 * NSEC_PER_SEC)
#define CM_INTERVAL_MIN_NS cm_time_ns(10) /* 4 ms: between repetitions of a REP */
#define CM_ASK_AGAIN_NS (2 * NSEC_PER_MSEC)

#define CM_EVENTS    64 /* powers of two */
#define CM_REFUSALS  64
#define CM_HASH_LOAD 4 /* names per connection, at most, with its peer's */

/* ---- conn.c: ids and names ---- */

/*
 * Communication ids in an unpredictable order that repeats none before all others were used: a peer
 * keeps an id until its time-wait ends, and refuses a connection that uses it before. The order is
 * a counter encrypted by a Feistel network with random keys, so it needs no memory per id.
 */
#define IDS_ROUNDS 8

struct ids {
	u32 first, count; /* the range */
	u32 drawn;	  /* ids drawn in the current pass through the range */
	u32 half_bits;	  /* of the smallest domain of two equal halves that contains the range */
	u64 key[IDS_ROUNDS];
};

/* count: at least 1. The keys come from random. */
void ids_make(struct ids *ids, u32 first, u32 count, u64 (*random)(void *arg), void *arg);
u32 ids_next(struct ids *ids);

/*
 * Lookup of connections and peers: one hash table of numbers, each in a name space. Its seed is
 * secret, so that an attacker cannot choose names that share a bucket.
 */
enum cm_name_space {
	NAME_NONE, /* not in the table */
	NAME_ID,
	NAME_REMOTE, /* a peer's communication id */
	NAME_SIDR,   /* a peer's SIDR request */
	NAME_QPN,    /* a peer's QP */
	NAME_PEER,
};

struct cm_name {
	struct gid gid; /* of the peer; 0 for NAME_ID */
	u32 interface;
	u32 number;
	enum cm_name_space space;
	struct cm_name *next;
};

struct cm_names_table {
	struct cm_name **bucket;
	u32 buckets; /* a power of two */
	u64 seed;
};

/* Returns 0 or -ENOMEM. */
int names_make(struct cm_names_table *t, u32 names, u64 seed);
void names_unmake(struct cm_names_table *t);

struct cm_listener {
	struct cm_service service;
	bool used;
	u32 waiting; /* requests without cm_take() */
};

/* Half-open connections of one address. */
struct cm_peer {
	struct cm_name name;
	u32 half_open;
	struct cm_peer *next_free;
};

struct cm_conn {
	enum cm_state state;
	bool closed;	/* by the owner */
	bool passive;	/* a peer began it */
	bool half_open; /* counted in its peer's half_open */
	bool has_alternate;
	u8 max_retries, retries_left;
	u8 asks_left;	/* requests left to a peer without a listener */
	u32 remote_id;	/* 0 until the peer has sent it */
	u32 qpn;	/* ours */
	u64 tid;	/* of the current exchange */
	u64 service_id;
	struct cm_path path;
	u64 interval_ns;  /* between repetitions of the last request */
	u64 ask_again_ns; /* delay after the next refusal of a peer without a listener */
	u64 refused_ns;	  /* how long a refusal is kept for repetition */
	u64 timewait_ns;
	void *context;
	struct cm_listener *listener; /* whose backlog it waits in, or NULL */
	struct cm_peer *peer;	      /* if half_open */
	u32 events;		      /* events in the queue */

	struct cm_name id;	   /* ours */
	struct cm_name remote;	   /* the peer's id: finds repeated REQs, SIDR_REQs */
	struct cm_name remote_qpn; /* finds stale connections */

	/* conn.c: in the list of ended and closed connections, the oldest first; or free */
	struct cm_conn *before, *after;

	/* cm.c: the last MAD, which is repeated; kind 0: none */
	u8 last_kind;
	bool send_pending;
	struct cm_conn *next_send;
	u8 last[CM_MAD_BYTES];
};

struct cm {
	struct cm_options options;
	struct cm_stats stats;
	struct cm_names_table names;
	struct ids ids;

	/* conn.c */
	struct cm_conn *conn; /* options.capacity, used up to num_conns */
	u32 num_conns;
	struct cm_conn *free;
	struct cm_spares {
		struct cm_conn *oldest, *newest;
	} spares[2]; /* [passive] */
	struct cm_peer *peer; /* options.capacity, used up to num_peers */
	u32 num_peers;
	struct cm_peer *free_peer;
	struct timer_heap timers; /* a slot is an index of conn */

	/* connect.c */
	struct cm_listener *listener; /* options.listeners */

	/* cm.c */
	struct cm_conn *first_send, *last_send;
	struct cm_send refusal[CM_REFUSALS];
	u32 refusals_put, refusals_got;

	/* conn.c */
	struct cm_event event[CM_EVENTS];
	u32 events_put, events_got;
};

/* ---- conn.c ---- */

/* Returns a connection in CM_IDLE with a new id; NULL: none is left. */
struct cm_conn *conn_new(struct cm *cm, const struct cm_path *path, bool passive);
/*
 * Changes the state: stops the timer, updates names and counts. A closed connection is freed in
 * CM_IDLE.
 */
void conn_enter(struct cm *cm, struct cm_conn *c, enum cm_state state);
void conn_set_timer(struct cm *cm, struct cm_conn *c, u64 deadline_ns);
/* Whether this address has as many half-open connections as it may have. */
bool conn_peer_is_full(const struct cm *cm, const struct cm_path *path);
/* Returns whether a peer may begin another connection; may free an ended one. */
bool conn_admits(struct cm *cm);
struct cm_conn *conn_by_id(const struct cm *cm, u32 id);
/* space: NAME_REMOTE, NAME_SIDR, NAME_QPN */
struct cm_conn *conn_by_remote(const struct cm *cm, const struct cm_path *path,
			       enum cm_name_space space, u32 number);
void conn_set_remote(struct cm *cm, struct cm_conn *c, enum cm_name_space space, u32 number);
void conn_set_remote_qpn(struct cm *cm, struct cm_conn *c, u32 qpn);
/* Removes the connection from its listener's backlog. */
void conn_taken(struct cm *cm, struct cm_conn *c);
bool conn_has_path(const struct cm_conn *c, const struct cm_path *path);
/* Sends what cm_close() owes the peer in this state; the connection is already closed. */
void conn_part(struct cm *cm, struct cm_conn *c, u64 now_ns);

/* ---- cm.c: output ---- */

/* Returns -EINVAL if the data is longer than the kind allows. */
int mad_set_data(struct cm_mad *m, const void *data, u32 len);
/* Returns a MAD of this connection, with its ids and tid. */
struct cm_mad conn_mad(const struct cm_conn *c, enum cm_kind kind);
/* Keeps the MAD for repetition. */
void conn_keep(struct cm_conn *c, const struct cm_mad *m);
/* Sends and keeps the MAD. */
void conn_send(struct cm *cm, struct cm_conn *c, const struct cm_mad *m);
void conn_send_again(struct cm *cm, struct cm_conn *c);
void conn_send_forget(struct cm *cm, struct cm_conn *c);
/* The same, and repeats it until an answer arrives. */
void conn_ask(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, enum cm_state state,
	      u64 now_ns);
/* Sends a REJ or SIDR_REP and keeps it for some time: CM_REFUSED. */
void conn_refuse(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
/* Sends without a connection; the MAD is dropped if there is no room. */
void send_refusal(struct cm *cm, const struct cm_path *path, const struct cm_mad *m);
/* Sends cm_refuse()'s answer to m. Returns CM_DROP_refused, or CM_DROP_state if none is due. */
enum cm_drop send_refusal_of(struct cm *cm, const struct cm_path *path, const struct cm_mad *m);
/* Returns a REJ of this MAD. */
struct cm_mad refusal_rej(const struct cm_mad *m, enum cm_reason reason);

/* ---- conn.c: events ---- */

bool event_has_room(const struct cm *cm);
/* Queues an event; m may be NULL. Returns it, to be completed, or NULL for a closed connection. */
struct cm_event *event_put(struct cm *cm, enum cm_event_kind kind, struct cm_conn *c,
			   const struct cm_mad *m);

/* ---- by MAD ---- */

/* connect.c */
/*
 * Begins a connection from this side. Sets data, id and transaction id of its first MAD *m, whose
 * kind is set. Returns 0, -EINVAL (too much data) or -ENOBUFS.
 */
int active_begin(struct cm *cm, const struct cm_path *path, struct cm_mad *m, const void *data,
		 u32 len, struct cm_conn **out);
/* Handles a refusal for lack of a listener: true if the peer will be asked again. */
bool active_asks_again(struct cm *cm, struct cm_conn *c, u64 now_ns);
enum cm_drop input_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
		       u64 now_ns);
enum cm_drop input_rep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
enum cm_drop input_rtu(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
enum cm_drop input_mra(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
/* disconnect.c */
enum cm_drop input_rej(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
/* Returns a REJ for a time-out. The kernel finds its connection by our GUID in it and our id. */
struct cm_mad conn_rej_timeout(const struct cm *cm, const struct cm_conn *c);
/*
 * In CM_REFUSED: repeats the refusal, about the repeated MAD. The kernel accepts a REJ of its REQ
 * without ids, and any other only with both.
 */
void conn_refuse_again(struct cm *cm, struct cm_conn *c, enum cm_about about);
enum cm_drop input_dreq(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
enum cm_drop input_drep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
void conn_send_dreq(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);
void conn_timewait(struct cm *cm, struct cm_conn *c, u64 now_ns);
/* connect.c: SIDR */
enum cm_drop input_sidr_req(struct cm *cm, const struct cm_path *path, const struct cm_mad *m,
			    u64 now_ns);
enum cm_drop input_sidr_rep(struct cm *cm, struct cm_conn *c, const struct cm_mad *m, u64 now_ns);

#endif
