/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the port's own files know of each other; nobody outside user/port includes this.
 *
 *   port.c       the ports of this process, exclusive access, fork     shard.c    a shard's lock, its events, who runs it
 *   port_make.c  attach, maps, sockets: needs privileges, once         pump.c     frames between sockets, engine and loopback
 *   umem.c       who owns each frame                                   handover.c frames for QPs that are at home in another shard
 *   xsk.c        AF_XDP sockets, receiving                             homing.c   QPs move to the shard where their packets arrive
 *   tx_xsk.c     sending through them                                  steer.c    QPs and GIDs as XDP sees them
 *   tx_policy.c  which way frames leave                                wake.c     CQs and their arm words
 *   tx_redirect.c  XDP redirection: TAP, live frames                   service.c  the thread that works while the application does not
 *   tx_portion.c   how many frames at a time it takes                  vector.c   completion vectors: whose thread raises an event
 *   tx_gso.c       UDP super-packets, through a packet socket          follow.c   the interface changes, or goes away
 *   tx_watch.c     what the interface says to redirection              channel.c  completion channels; sleep.c: sleeping on them
 *   rings.c        the channels' ring buffers, where XDP finds them
 *   tx_outlook.c   which way frames would leave, told from outside
 *
 * A port has a shard for each of its receive queues, up to XROCE_MAX_SHARD: an engine, the sockets of its queues with frames of their own, a way out, a lock and a
 * service thread. Most ports have one. Who runs the engine holds the shard's lock; who makes, changes or ends an object holds the locks of all, in order
 * (port_lock()): so what only they change may be read under any one of them. Who holds one lock does not wait for another.
 *
 * Locks, outermost first: the list of ports (port.c), the watches' (watch.c), a channel's (wake.c), the shards', the CQ table's (wake.c).
 */
#ifndef PORT_PORT_STATE_H
#define PORT_PORT_STATE_H

#include <poll.h>
#include <pthread.h>
#include <xroce/abi.h>

#include "../shard/handover.h"
#include "../shard/homing.h"
#include "../base/options.h"
#include "port.h"
#include "../tx/tx.h"
#include "../xsk/umem.h"
#include "../netdev/watch.h"
#include "../xsk/xsk.h"

struct xroce_bpf;
struct ring_buffer;

/* What a shard receives from and sends to. */
struct shard_made {
	struct umem umem;
	struct xsk_set xsks;
	struct tx *tx;
	int ring_fd;		/* the ring by which XDP wakes its thread */
	struct xroce_engine_stats *stats;
	struct xroce_drops *drops;
};

/* What port_make() makes. Using it needs no privilege: all of it is descriptors and mappings, which could come from elsewhere. */
struct port_made {
	struct port_info info;
	int holder_fd;
	int link_fd;
	struct xroce_bpf *bpf;
	int qp_map_fd, gid_map_fd, channel_map_fd; /* bpf's */
	/* mappings of maps */
	struct xroce_cq *cq;			   /* XROCE_MAX_CQ arm words */
	struct xroce_expect *expect;		   /* XROCE_MAX_QP */
	struct xroce_engine *engine;
	struct xroce_vector *vector;		   /* XROCE_MAX_QUEUE */
	struct xroce_sock *sock;		   /* XROCE_MAX_QUEUE */
	struct xroce_engine_stats *stats;	   /* XROCE_MAX_SHARD */
	struct xroce_drops *drops;		   /* XROCE_MAX_SHARD */
	struct shard_made shard[XROCE_MAX_SHARD];
};

/* Returns 0 or -errno after a line on standard error; nothing is left behind then. GIDs are not published yet. */
int port_make(const struct netdev *dev, struct port_made *out);
void port_unmake(struct port_made *made);
/* XDP redirects nothing more; all else stays. */
void port_detach(struct port_made *made);
/* In a forked child: let go of everything without touching the parent's; the mappings are replaced by private memory. */
void port_abandon(struct port_made *made);

/* A frame to ourselves between the engine's output and its input. */
struct loop_frame {
	u8 *frame;
	u32 len;
};

/* A shard's thread; service.c draws who writes what. It is that of the completion vectors whose number, modulo the shards', is the shard's. */
struct service {
	bool started;
	pthread_t thread;
	int control_fd;
	struct ring_buffer *ring;
	u64 spin_ns;
	u64 spin_max_ns;
	u64 tick_ns;
	_Atomic bool stop;
	_Atomic u64 driven cache_aligned; /* moves whenever the application drives the shard */
	_Atomic u32 trust;		  /* calls that drove since work that was put off for the next one had to be done by this thread */
	_Atomic u32 trust_needed;
	_Atomic u32 sleepers;		  /* threads in port_channel_wait() that watch the shard's sockets */
	_Atomic u64 sleep_until_ns;	  /* 0: awake, or so soon that nobody need wake it */
};

struct shard {
	struct port *port;
	u32 number;
	struct shard_made *made;
	struct engine *engine;

	/* under its lock */
	pthread_mutex_t lock cache_aligned;
	struct loop_frame loop[XSK_TX_SLOTS];
	u32 loop_count;
	u64 blocked_ns;		/* how long to wait for room in the transmit ring; 0 = there was room */
	_Atomic u64 resume_ns;	/* the pump has work left for then; NSEC_NEVER. Any thread reads it */
	u32 taken_since_due;	/* descriptors, while time-outs wait for what is in the rings */
	/* when to read the sockets' statistics again; NSEC_NEVER: nothing has come since */
	_Atomic u64 account_ns;
	_Atomic bool owes;	/* the last run received and did not send: pump_poll() */
	_Atomic u32 put_off;	/* posts since the last run that sent: port_post() */
	_Atomic u64 burst_until_ns; /* who posts again before then is in a burst */
	_Atomic u32 idle_polls;	/* polls that found nothing to do */
	u64 random[32];
	u32 random_left;
	u32 to_run;		/* shards with something to do for this one's doing: whoever unlocks sees to it */
	struct homing homing;

	struct handover handover;
	struct service service;
};

struct cq_table {
	pthread_mutex_t lock;
	struct cq *cq[XROCE_MAX_CQ];
	struct port_channel *channel_of[XROCE_MAX_CQ];
	u8 vector_of[XROCE_MAX_CQ];
	u32 next;			  /* where to look for a free index */
	u32 handed[XROCE_MAX_CQ];	  /* events that are left to the CQ's vector */
	/* the CQ of the latest one: where looking for them begins */
	u32 handed_last;
	_Atomic u32 handed_total;
};

/* A ring buffer and its key in xroce_channel. */
struct ring_slot {
	int fd;
	u32 slot;
};

/* rings.c */
struct rings {
	pthread_mutex_t lock;
	u32 num;		  /* that have been put in: the slots from XROCE_MAX_QUEUE on */
	struct ring_slot *spare;  /* those that no channel uses; room for all */
	u32 num_spare, room;
};

struct port {
	/* port.c's, under the lock of the list */
	struct port *next;
	u32 ifindex;
	u64 netns;		/* inode of the network namespace */
	_Atomic u32 refs;
	bool dead;		/* in a forked child: memory only */
	struct watch *watch;	/* follow.c */

	struct port_made made;
	u32 num_shards;		/* made.info.shards, of those that have been set up */
	struct shard *shard;

	/* under all shards' locks */
	struct netdev dev;	/* as last published: GIDs, MAC */
	int follow_err;		/* of publishing it */
	struct moves moves;	/* homing.c */
	_Atomic bool gone;	/* the interface is: set once. Any thread reads it */

	struct rings rings;
	struct cq_table cqs cache_aligned;
};

/* The shard that an engine is of, and where a QP is at home; without a lock, a hint. */
static inline struct shard *shard_of(struct port *port, const struct engine *e)
{
	return &port->shard[engine_number(e)];
}
static inline struct shard *shard_home(struct port *port, const struct qp *qp)
{
	return shard_of(port, qp_engine(qp));
}

/* The shards whose engines complete to a CQ, a bit each; the first where none does, so that who polls or arms it drives some. Without a lock, a hint. */
static inline u32 shards_of_cq(const struct port *port, const struct cq *cq)
{
	u32 shards = port->num_shards == 1 ? 1 : cq_engines(cq);

	return shards ? shards : 1;
}

/* ---- port.c ---- */
/* One more reference, by someone who knows that there is one. port_put() drops it. */
void port_hold(struct port *port);

/* ---- shard.c ---- */
#define REPORT_ANY UINT32_MAX /* a thread of the application */
void shard_init_lock(struct shard *s);
void shard_lock(struct shard *s);
/*
 * Report its events, unlock, and see to what came up meanwhile and in other shards. reporter: the number of the shard whose thread the caller is: it reports the
 * events of its own CQs, and the others' threads those of theirs; or REPORT_ANY.
 */
void shard_unlock(struct shard *s, u32 reporter);
/* When it must be run at the latest if nothing happens. [any thread] as a hint */
u64 shard_deadline_ns(const struct shard *s);
/* Receive, run the engine, send, waiting for the lock. */
void shard_run(struct shard *s);
/* Exclusive: of all shards, in order, for a thread of the application or of a shard. */
void shards_lock(struct port *port);
void shards_unlock(struct port *port, u32 reporter);

/* ---- pump.c: under the shard's lock ---- */
/* Once round; true if anything moved. */
bool pump_run(struct shard *s);
/* Once round, but if that fills cq, which was empty, the sending may be left to the next run. */
void pump_poll(struct shard *s, const struct cq *cq);
/*
 * Nothing more comes: take what is there, send what is owed, and read what the sockets have
 * counted.
 */
void pump_settle(struct shard *s);
/* Only what other shards have handed over. True if there was any: what that calls for has not been sent. */
bool pump_take_handed(struct shard *s, u64 now_ns);

/* ---- steer.c: exclusive ---- */
/* Make xroce_gid hold dev's GIDs and no others, and dev the port's. Returns 0 or -errno of the first that failed. */
int steer_publish_gids(struct port *port, const struct netdev *dev);

/* ---- follow.c ---- */
/* Publish the interface's addresses, now and whenever they change. Returns 0 or -errno; follow_stop() in both cases. No lock held. */
int follow_start(struct port *port, const struct netdev *dev);
void follow_stop(struct port *port);

/* ---- wake.c ---- */
void wake_init(struct port *port);
void wake_destroy(struct port *port);
/* The engine took cq->armed: XDP's word follows, unless the application has armed again. Under the lock of a shard. */
void wake_taken(struct port *port, struct cq *cq);
/* XDP took the words of these CQs; of those that are armed still, set them again. True if any was. */
bool wake_rearm(struct port *port, const u32 *record, u32 n);
/* port_channel_extra() of a channel of this port. No lock held. */
void wake_extra(struct port *port, struct port_channel *ch);
/* A ring buffer for XROCE_RING_BYTES of records: its descriptor, close-on-exec, or -errno. */
int wake_make_ring(void);

/* ---- rings.c ---- */
void rings_init(struct port *port);
void rings_close(struct port *port);
/*
 * A ring that XDP finds: a spare one, or own, which the port has from then on. Returns 0 or -errno.
 */
int rings_take(struct port *port, int own, struct ring_slot *out);
/* It is empty, and no CQ uses it any more. */
void rings_give(struct port *port, const struct ring_slot *ring);

/* ---- vector.c: under the lock of a shard ---- */
/* The reporter has an event of this CQ. False: it is left to the thread of the CQ's vector. */
bool vector_may_report(struct port *port, const struct cq *cq, u32 reporter);
/* The next CQ with an event that was left to this reporter; NULL: none. */
struct cq *vector_take_handed(struct port *port, u32 reporter);
/* The table locked: an event of the CQ with that index is left to whoever reports events next, and may. */
void vector_hand(struct cq_table *t, u32 index);
/* Has any been left to anybody? [any thread] */
bool vector_waits(const struct port *port);

/* ---- service.c ---- */
/* Start the threads of all shards. Returns 0 or -errno; service_stop() in both cases. */
int service_start(struct port *port);
void service_stop(struct port *port);
/* In a forked child, where the threads are not: close their descriptors. */
void service_abandon(struct port *port);
void service_kick(struct shard *s);
/* After work on the shard, lock not held, behind a full fence: make its thread see a deadline that is sooner than its sleep. */
void service_nudge(struct shard *s);
/* The application is at it. */
void service_driven(struct shard *s);
/* May something wait for the application's next call? It has been coming, and if it stops, the service thread, awake by now, sees to it within a tick or two. */
bool service_may_wait(struct shard *s);
/* A thread is about to sleep on the shard's sockets itself, or has done so. */
void service_sleeper_enter(struct shard *s);
void service_sleeper_leave(struct shard *s);

#endif
