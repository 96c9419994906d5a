/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the port's own files know of each other; nobody outside user/port includes this.
 *
 *   port.c       the ports of this process, the lock, events, fork     pump.c     frames between sockets, engine and loopback
 *   port_make.c  attach, maps, sockets: needs privileges, once         steer.c    QPs and GIDs as XDP sees them
 *   umem.c       who owns each frame                                   wake.c     arm words and completion channels
 *   xsk.c        AF_XDP sockets, receiving                             service.c  the thread that works while the application does not
 *   tx_xsk.c     sending through them                                  vector.c   its fellows, a thread a completion vector
 *   tx_policy.c  which way frames leave                                follow.c   the interface changes, or goes away
 *   tx_redirect.c  XDP redirection: TAP, live frames                   tx_watch.c what the interface says to that
 *   tx_portion.c   how many frames at a time it takes                  tx_gso.c   UDP super-packets, through a packet socket
 *   tx_outlook.c   which way they would leave, told from outside
 *
 * Locks, outermost first: the list of ports (port.c), the watches' (watch.c), a channel's (wake.c), the port's own, the CQ table's (wake.c).
 */
#ifndef PORT_PORT_STATE_H
#define PORT_PORT_STATE_H

#include <poll.h>
#include <pthread.h>
#include <xroce/abi.h>

#include "port.h"
#include "tx.h"
#include "umem.h"
#include "watch.h"
#include "xsk.h"

struct xroce_bpf;
struct ring_buffer;

/* What port_make() makes. Using it needs no privilege: all of it is descriptors and mappings, which could come from elsewhere. */
struct port_made {
	struct port_info info;
	int holder_fd;
	int link_fd;
	int vector_ring_fd[XROCE_MAX_QUEUE];
	struct xroce_bpf *bpf;
	int qp_map_fd, gid_map_fd, channel_map_fd; /* bpf's */
	/* mappings of maps */
	struct xroce_cq *cq;			   /* XROCE_MAX_CQ arm words */
	struct xroce_engine *engine;
	struct xroce_vector *vector;		   /* XROCE_MAX_QUEUE */
	struct xroce_engine_stats *stats;	   /* XROCE_MAX_SHARD, an engine each */
	struct xroce_drops *drops;		   /* the same */
	struct umem umem;
	struct xsk_set xsks;
	struct tx *tx;
};

/* Returns 0 or -errno after a line on standard error; nothing is left behind then. GIDs are not published yet. */
int port_make(const struct netdev *dev, struct port_made *out);
void port_unmake(struct port_made *made);
/* In a forked child: let go of everything without touching the parent's; the mappings are replaced by private memory. */
void port_abandon(struct port_made *made);

/* A frame to ourselves between the engine's output and its input. */
struct loop_frame {
	u8 *frame;
	u32 len;
};

/* A completion vector: the thread that serves it, once it has one. */
struct vector {
	struct port *port;
	u32 number;
	_Atomic bool started;
	pthread_t thread;
	int control_fd;
	struct ring_buffer *ring;
	u64 spin_ns;
};

/* service.c and vector.c draw who writes these. */
struct service {
	struct vector vector[XROCE_MAX_QUEUE];
	u64 spin_max_ns;
	u64 tick_ns;
	_Atomic bool stop;
	_Atomic bool watching;
	_Atomic u64 watch_driven;	  /* as driven was when watching was set */
	_Atomic u64 driven cache_aligned; /* moves whenever the application drives the port */
	_Atomic u32 trust;		  /* calls that drove since work that was put off for the next one had to be done by this thread */
	_Atomic u32 trust_needed;
	_Atomic u32 sleepers;		  /* threads in port_channel_wait() */
	_Atomic u64 sleep_until_ns;	  /* 0: awake, or so soon that nobody need wake it */
};

struct cq_table {
	pthread_mutex_t lock;
	struct cq *cq[XROCE_MAX_CQ];
	struct port_channel *channel_of[XROCE_MAX_CQ];
	u8 vector_of[XROCE_MAX_CQ];
	u32 next;			  /* where to look for a free index */
	bool channel[XROCE_MAX_CHANNEL];  /* slots of xroce_channel in use */
	/* under the port's lock */
	u32 handed[XROCE_MAX_CQ];	  /* events that are left to the CQ's vector */
	u32 handed_total;
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
	struct engine *engine;

	/* under the port's lock */
	pthread_mutex_t lock cache_aligned;
	struct netdev dev;	/* as last published: GIDs, MAC */
	int follow_err;		/* of publishing it */
	_Atomic bool gone;	/* the interface is: set once. Any thread reads it */
	struct loop_frame loop[XSK_TX_SLOTS];
	u32 loop_count;
	u64 blocked_ns;		/* how long to wait for room in the transmit ring; 0 = there was room */
	_Atomic u64 resume_ns;	/* the pump has work left for then; NSEC_NEVER. Any thread reads it */
	_Atomic bool owes;	/* the last run received and did not send: pump_poll() */
	_Atomic u32 put_off;	/* posts since the last run that sent: port_post() */
	_Atomic u64 burst_until_ns; /* who posts again before then is in a burst */
	_Atomic u32 idle_polls;	/* polls that found nothing to do */
	u64 random[32];
	u32 random_left;

	struct cq_table cqs;
	struct service service;
};

/* ---- port.c ---- */
/* One more reference, by someone who knows that there is one. port_put() drops it. */
void port_hold(struct port *port);
/* port_unlock() for the thread of a vector: it reports the events of its own CQs, and the other vectors' threads those of theirs. */
void port_unlock_for(struct port *port, u32 vector);
/* When the port must be run at the latest if nothing happens. [any thread] as a hint */
u64 port_deadline_ns(const struct port *port);

/* ---- options.c ---- */
/* XROCE_TX: the way that frames leave. */
enum tx_choice { TX_AUTO, TX_XSK, TX_TAP, TX_LIVE, TX_GSO };
enum tx_choice options_tx(void);
/* XROCE_XDP: how the receiving program is attached. */
enum xdp_choice { XDP_CHOICE_AUTO, XDP_CHOICE_NATIVE, XDP_CHOICE_GENERIC };
enum xdp_choice options_xdp(void);
/* Fill in what the environment may choose of an engine. */
void options_read(const struct netdev *dev, struct engine_config *config);

/* ---- pump.c: under the port's lock ---- */
/* Once round; true if anything moved. */
bool pump_run(struct port *port);
/* Once round, but if that fills cq, which was empty, the sending may be left to the next run. */
void pump_poll(struct port *port, const struct cq *cq);

/* ---- steer.c: under the port's lock ---- */
/* Make xroce_gid hold dev's GIDs and no others, and dev the port's. Returns 0 or -errno of the first that failed. */
int steer_publish_gids(struct port *port, const struct netdev *dev);

/* ---- follow.c ---- */
/* Publish the interface's addresses, now and whenever they change. Returns 0 or -errno; follow_stop() in both cases. Not under the port's lock. */
int follow_start(struct port *port, const struct netdev *dev);
void follow_stop(struct port *port);

/* ---- wake.c ---- */
void wake_init(struct port *port);
void wake_destroy(struct port *port);
/* The engine took cq->armed: XDP's word follows, unless the application has armed again. Under the port's lock. */
void wake_taken(struct port *port, struct cq *cq);
/* A ring buffer for XROCE_RING_BYTES of records: its descriptor, close-on-exec, or -errno. */
int wake_make_ring(void);

/* ---- vector.c ---- */
#define VECTOR_ANY UINT32_MAX /* a thread of the application */
/* Start the thread of a vector that has none. Returns 0 or -errno. vector_use(): unless it has one, and any vector but 0. [any thread] */
int vector_start(struct port *port, u32 number, void *(*run)(void *vector));
int vector_use(struct port *port, u32 number);
/* The thread begins. */
void vector_enter(struct vector *v, const char *name);
void vector_kick(struct vector *v);
/* What its thread sleeps on whatever else it does: its control descriptor and its ring. After poll(): take what woke it there. */
#define VECTOR_FDS 2
void vector_sleep_on(const struct vector *v, struct pollfd fds[VECTOR_FDS]);
void vector_take_wakeup(struct vector *v, const struct pollfd fds[VECTOR_FDS]);
/* Its thread slept that long for want of packets: adapts how long it spins before the next time. */
void vector_slept(struct vector *v, u64 slept_ns);
/* All from that number on that have a thread. */
void vectors_kick(struct port *port, u32 from);
/* They have been told to stop: wait for them. Without join they are not there (a forked child). */
void vectors_end(struct port *port, bool join);
/* Under the port's lock: the reporter has an event of this CQ. False: it is left to the thread of the CQ's vector. */
bool vector_may_report(struct port *port, const struct cq *cq, u32 reporter);
/* Under the port's lock: the next CQ with an event that was left to this reporter; NULL: none. */
struct cq *vector_take_handed(struct port *port, u32 reporter);

/* ---- service.c ---- */
/* Returns 0 or -errno. */
int service_start(struct port *port);
void service_stop(struct port *port);
/* In a forked child, where the thread is not: close its descriptors. */
void service_abandon(struct port *port);
/* Run the port until it has been idle for a while. False, perhaps at once, if the application came: driven is not what it was. */
bool service_serve(struct port *port, struct vector *v, u64 driven);
/* After work on the port, lock not held, behind a full fence: make the service thread see a deadline that is sooner than its sleep. */
void service_nudge(struct port *port);
/* The application is at it. */
void service_driven(struct port *port);
/* May something wait for the application's next call? It has been coming, and if it stops, the service thread, awake by now, sees to it within a tick or two. */
bool service_may_wait(struct port *port);
/* A thread is about to sleep on the sockets itself, or has done so. */
void service_sleeper_enter(struct port *port);
void service_sleeper_leave(struct port *port);

#endif
