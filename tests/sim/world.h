/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world that engines live in when no kernel is there: a few nodes with one engine each or
 * several, links between them that lose, repeat, hold back and damage packets by schedule, and a
 * clock that jumps from event to event. It is the engine's second caller, after the pump in
 * user/run, under the same contract: one call at a time, exact buffers, every frame final.
 *
 * Of a node's engines it runs only the ones with work: work that one leaves to another must be
 * reported. XROCE_SIM_ENGINES=n gives every node n engines, and QPs are assigned to them in turn.
 *
 * Nothing here is random but by the world's seed. A run that does not end fails with the world's
 * label, which replays it.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdarg.h>
#include <stdio.h>

#include "../../user/engine/engine.h"
#include "rng.h"

#define WORLD_MAX_NODES	 4
#define WORLD_LATENCY_NS 1000
/* Where AF_XDP cuts a frame: the size that fits a 4 KiB chunk after its headroom. */
#define WORLD_SPLIT_BYTES 3840

/* What happens to a packet on its way. */
enum fate {
	FATE_DELIVERED,
	FATE_DROPPED,
	FATE_DUPLICATED,
	FATE_CORRUPTED,
	FATE_HELD,
	FATE_NO_NODE,
	FATE_FLOODED	/* multicast: to every other node, and the sender's members */
};

/* A frame that an engine sent: its headers as the codec reads them, and the whole frame. */
struct sent_frame {
	u64 time_ns;
	u32 from, to;		/* nodes; to is WORLD_MAX_NODES if no node has the address */
	enum fate fate;
	struct packet packet;	/* its pointers point into data */
	u8 *data;
	u32 len;
};

/*
 * One direction of a link. Bit n of a schedule is for the nth packet of this direction; rates are
 * chances in 65536.
 */
struct faults {
	u64 drop, duplicate, corrupt, hold;
	u32 drop_rate, duplicate_rate, corrupt_rate, hold_rate;
	u32 mark_rate;		/* ECN-capable packets become CE */
	u32 hold_packets;	/* how many later packets overtake a held one; 0 counts as 1 */
	bool dead;		/* drops everything */
	/* Drops the packets for which it returns true; for schedules by content, not by count. */
	bool (*drops)(const struct sent_frame *f, void *arg);
	void *drops_arg;
	u64 count;		/* packets seen */
};

/* A CQ that the world polls for the application after every step, and its completions. */
struct watched_cq {
	struct cq cq;
	struct cqe *log;
	u32 n, room;
	bool polled;		/* false: the test polls, or lets it run over */
	struct watched_cq *next;
};

struct node {
	struct world *world;
	u32 index;
	struct engine *engine;	/* number 0: what wants all of them takes any */
	struct engine *engines[ENGINE_MAX];
	u32 num_engines;
	u32 to_run;		/* bitmap of engines with work, by number */
	u32 next_owner;
	u32 *qpns;		/* of all QPs ever made by side_create() */
	u32 num_qpns, qpns_room;
	struct xroce_engine_stats stats; /* of all engines together */
	struct xroce_drops drops;
	struct xroce_expect *expect; /* expectations of responses for XDP; see world_deliver() */
	u8 mac[6];
	struct gid gid4, gid6;
	struct faults to[WORLD_MAX_NODES];
	struct watched_cq *cqs;
	struct buffer *buffers;
	struct engine_event *events;
	u32 num_events, events_room;
	u64 stopped_until_ns;	/* world_stop() */
};

/* Memory of a node with a registered region over it, and guard bytes around it. */
struct buffer {
	u8 *bytes;
	u32 len;
	struct mr *mr;
	u8 *allocation;
	struct node *node;
	struct buffer *next;
};

struct flight;

struct world {
	u64 now_ns;
	u64 latency_ns;
	u64 seed;
	struct rng rng;
	u32 num_nodes;
	struct node node[WORLD_MAX_NODES];
	u32 split_bytes;	/* longer frames arrive in two buffers */
	/* chance in 65536 that a QP moves to another engine of its node before a packet arrives */
	u32 move_rate;
	u64 moves;
	/* engines are drawn by this, so that with several of them all else happens as with one */
	struct rng where;
	/* packets handed to an engine before its output is fetched; at least 1 */
	u32 rx_batch;
	u64 max_steps;		/* of one world_run(); a run that takes more fails */
	bool keep_frames;	/* keep sent frames in sent[] */
	/* print every packet; also by XROCE_SIM_TRACE=1 in the environment */
	bool trace;
	struct sent_frame *sent;
	u32 num_sent, sent_room;
	struct flight *flights;
	u32 num_flights, flights_room;
	u64 flight_sequence;
	char label[160];	/* the line that replays this run */
};

/*
 * num_nodes engines, all with a lossless link to each other. Never fails: it ends the test instead.
 */
struct world *world_create(u32 num_nodes, u64 seed);
/* The same with other engines than the default ones. */
struct world_options {
	u32 disable[WORLD_MAX_NODES]; /* ENGINE_NO_*: parts of each engine that are turned off */
	bool ecn;		      /* packets go out ECN-capable */
	u64 line_rate;		      /* bytes/s, for the rate limit; 0 = the default */
	const struct pkey_table *pkeys[WORLD_MAX_NODES]; /* NULL: the default P_Key alone */
	u32 num_engines;	      /* of each node; 0 = XROCE_SIM_ENGINES, or one */
	const struct engine_faults *faults[WORLD_MAX_NODES]; /* on request; NULL: none */
	bool unknown_ids;	      /* of arriving packets, as of UDP sockets */
};
struct world *world_create_with(u32 num_nodes, u64 seed, const struct world_options *o);
/* Destroys the engines: their QPs must be destroyed already. Checks the guards of all buffers. */
void world_destroy(struct world *w);
/* Sets the text to print when this run fails. */
void world_label(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Run until nothing is under way and no timer runs. Ends the test after max_steps. */
void world_run(struct world *w);
/* Run what happens in the next ns nanoseconds, then stand there. */
void world_run_for(struct world *w, u64 ns);
/* Lets the engines send all that is due now; no time passes. */
void world_settle(struct world *w);
/*
 * Stops a node's process for `ns`: its threads get no processor, or a user stopped it. Arriving
 * packets wait in its receive ring, which is emptied before time-outs fire, as in the port.
 */
void world_stop(struct node *n, u64 ns);
/* Throw away all packets that are under way. */
void world_drop_flights(struct world *w);
void world_forget_sent(struct world *w);

/* The owner of the next QP: engines take turns, except for pinned QPs, which live in number 0. */
struct engine *world_owner(struct node *n, bool is_pinned);
/* A QP that may be moved, as long as there is one of its number. */
void world_know_qp(struct node *n, const struct qp *qp);
/* Notifies a QP's owner of posted work. */
void world_ring(struct node *n, struct qp *qp);
/* Move a QP to another engine of its node. */
void world_move(struct node *n, struct qp *qp, u32 to);
/* The earliest deadline of a node's engines. */
u64 world_deadline_ns(const struct node *n);

/* Hand a frame to a node as its interface would; returns what engine_input() did. */
enum xroce_drop world_deliver(struct world *w, u32 to, const u8 *frame, u32 len);

/* An address, and the path from one node to another. */
struct gid world_gid(u32 node, bool is_ipv6);
struct path world_path(const struct world *w, u32 from, u32 to, bool is_ipv6);

struct watched_cq *world_cq(struct node *n, u32 capacity);
void world_cq_destroy(struct node *n, struct watched_cq *c);
/* Take all completions of one CQ into its log now. */
void world_poll(struct watched_cq *c);

/*
 * A buffer of len bytes filled by buffer_fill(), registered with access under pd 1; iova is the
 * virtual address.
 */
struct buffer *world_buffer(struct node *n, u32 len, u32 access);
struct buffer *world_buffer_pd(struct node *n, u32 len, u32 access, u32 pd);
void buffer_fill(u8 *bytes, u32 len, u32 seed);
static inline u64 buffer_va(const struct buffer *b)
{
	return (u64)(uintptr_t)b->bytes;
}
static inline struct sge buffer_sge(const struct buffer *b, u32 offset, u32 len)
{
	return (struct sge){ .addr = buffer_va(b) + offset, .length = len, .lkey = b->mr->key };
}

/* How many events of a type (and of this QP, if not NULL) a node has reported. */
u32 world_events(const struct node *n, enum engine_event_type type, const struct qp *qp);

/*
 * How many frames from a node match an opcode (any transport's: low five bits), and the nth of them
 * or NULL.
 */
u32 world_count_sent(const struct world *w, u32 from, u8 low_opcode);
const struct sent_frame *world_sent(const struct world *w, u32 from, u8 low_opcode, u32 n);
/* The most frames of node 0 under way at a time: the most a receiver would find. */
u32 world_most_under_way(const struct world *w);

/* End the test, naming the run, unless ok. */
void world_check(struct world *w, bool ok, const char *what, const char *file, int line);
#define check(w, condition) world_check((w), (condition), #condition, __FILE__, __LINE__)
void world_check_u64(struct world *w, u64 got, u64 want, const char *what, const char *file,
		     int line);
#define check_eq(w, got, want)                                                                     \
	world_check_u64((w), (u64)(got), (u64)(want), #got " == " #want, __FILE__, __LINE__)

#endif
