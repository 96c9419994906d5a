/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verbs objects: the private structs of the pointers that <infiniband/verbs.h> hands to the
 * application, and the functions shared between the files of this directory.
 *
 * Each object begins with the public struct, so that pointers convert. Some structs (ibv_device,
 * ibv_cq_ex, ibv_qp_ex) may be longer in newer headers: zeroed slack follows them.
 *
 * Locks, in the order in which they are taken:
 *   vcontext.lock    making the port, CQs joining it                    (mutex)
 *   vcq.lock         the consumer's side of a CQ, by address if two     (spin)
 *   vqp.sq_lock, vqp.rq_lock, vsrq.lock, vwq.lock   the producers' sides  (spin)
 *   port_lock()      the engines
 *   vcontext.async_lock, vchannel.lock    queues of events              (mutex)
 *   lists_lock       the process's devices, PDs, MRs, domains           (mutex)
 * docs/ownership.md, "Locks", has those below.
 * The public mutexes inside ibv_cq, ibv_qp, ibv_srq and ibv_wq guard the counts of acknowledged
 * events only and are taken alone.
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "../engine/engine.h"
#include "../engine/owner.h"
#include "../fault/lab_words.h"
#include "../os/netdev_cache.h"
#include "../os/link_watch.h"
#include "../os/signals.h"
#include "../port/port.h"
#include "domain.h"
#include "newer.h"

/* Functions that the header replaces by macros are defined here under their own names. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EXPORT __attribute__((visibility("default")))

/* bytes of zeros after a struct that newer headers may have extended */
#define VERBS_SLACK   256
#define VERBS_MAX_CQE (1 << 22)	     /* cq_init()'s limit */
#define VERBS_MAX_SRQ_WR QP_MAX_WR
#define VERBS_MAX_MESSAGE ROCE_MESSAGE_MAX
#define VERBS_PORT    1		     /* a device has one port, numbered from 1 */
/*
 * The longest time that a verb waits for a neighbour: three ARP requests, one per second. For the
 * sender of a datagram, whose address may be forged, it is NEIGH_SHORT_WAIT_MS; after a sender
 * without an answer, no sender is waited for within NEIGH_REST_MS.
 */
#define RESOLVE_TIMEOUT_MS 3000

/* The spin lock of a queue. It can be switched off for objects that one thread uses. */
struct vlock {
	struct spin spin;
	bool off;
};

static inline bool vlock_try(struct vlock *l)
{
	return l->off || spin_try(&l->spin);
}

static inline void vlock_take(struct vlock *l)
{
	for (u32 tries = 0; !vlock_try(l); tries++)
		if (tries >= 64)
			sched_yield();
}

static inline void vlock_drop(struct vlock *l)
{
	if (!l->off)
		spin_unlock(&l->spin);
}

/* All objects of a kind in this process, newest first, for imports by handle. */
struct vlink {
	struct vlink *next, **at; /* the pointer to this link */
};

struct vlist {
	struct vlink *first;
};

/* Guards all lists of this process; held across fork(), so the child's lists are intact. */
extern pthread_mutex_t lists_lock;

static inline void vlist_add(struct vlist *l, struct vlink *n)
{
	pthread_mutex_lock(&lists_lock);
	n->next = l->first;
	n->at = &l->first;
	if (n->next)
		n->next->at = &n->next;
	l->first = n;
	pthread_mutex_unlock(&lists_lock);
}

static inline void vlist_remove(struct vlist *l, struct vlink *n)
{
	pthread_mutex_lock(&lists_lock);
	*n->at = n->next;
	if (n->next)
		n->next->at = n->at;
	pthread_mutex_unlock(&lists_lock);
}

/*
 * An object with its own locks, events or descriptors, and its handlers for a forked child and for
 * the end of its file: context.c.
 */
struct fork_entry;
typedef void fork_fn(struct fork_entry *entry);
struct fork_entry {
	struct vlink listed;
	fork_fn *in_child;	/* NULL: nothing to do in a child */
	/* ends the object when the last context of its file is closed; NULL: nothing to end */
	fork_fn *at_close;
	u64 file_id;		/* of its context, with at_close */
	_Atomic bool is_over;	/* that context is closed; set under lists_lock */
	/*
	 * this process has the object from its parent: its descriptors are replaced, and the
	 * program may have closed them and opened others of their numbers
	 */
	bool is_inherited;
};
void fork_add(struct fork_entry *entry, fork_fn *in_child);
/* The same for an object that ends with the file of its context. */
struct vcontext;
void fork_add_to(struct vcontext *ctx, struct fork_entry *entry, fork_fn *in_child,
		 fork_fn *at_close);
void fork_remove(struct fork_entry *entry);
/*
 * Returns an object with this handler for which is() returns true, or NULL. is() runs under
 * lists_lock.
 */
struct fork_entry *fork_find(fork_fn *in_child, bool (*is)(struct fork_entry *entry, u64 arg),
			     u64 arg);

/*
 * Limits of ibv_query_device(3) on each kind of object: per device, over all contexts of this
 * process. The engine counts QPs.
 */
enum vlimit {
	LIMIT_PD, LIMIT_MR, LIMIT_MW, LIMIT_AH, LIMIT_CQ, LIMIT_SRQ, LIMIT_TABLE, LIMIT_COMP_CNTR,
	LIMITS
};
#define VERBS_MAX_PD  (1 << 16)
#define VERBS_MAX_MR  (1 << 19)
#define VERBS_MAX_MW  (1 << 19)
#define VERBS_MAX_AH  (1 << 18)
#define VERBS_MAX_CQ  XROCE_MAX_CQ
#define VERBS_MAX_SRQ ENGINE_MAX_SRQ
#define VERBS_MAX_TABLE (1 << 12)
#define VERBS_MAX_COMP_CNTR (1 << 16)
#define VERBS_MAX_DM  (1u << 24) /* bytes of device memory, in whole pages */
/*
 * Converts the result of a port call, 0 or -errno, to an errno. -ENOSPC, a limit of the port or its
 * broker, becomes ENOMEM, as the man pages say for a limit of the device.
 */
static inline int limit_errno(int err)
{
	return err == -ENOSPC ? ENOMEM : -err;
}

_Static_assert(VERBS_MAX_CQ >= XROCE_MAX_QP && VERBS_MAX_SRQ >= XROCE_MAX_QP, "one for each QP");

struct vdevice {
	struct ibv_device ibv;
	/* providers' libraries look for an ops pointer here and must find NULL */
	u8 slack[VERBS_SLACK];
	struct netdev nd;      /* as it was when the device was listed; refreshed before use */
	_Atomic u32 made[LIMITS];
	u64 dm_pages;	       /* pages of device memory, under lists_lock */
	u32 refs;	       /* held by lists and contexts, under lists_lock */
	struct vdevice *next;  /* under lists_lock */
};

struct async_node;

struct vcontext {
	struct vdevice *dev;
	_Atomic u32 refs;	/* one for the open context, one for each object created on it */
	_Atomic u32 made[LIMITS]; /* its part of the device's counts */
	/* inode of cmd_fd: contexts of the same file share handles (ibv_import_device(3)) */
	u64 file_id;
	bool is_closed;		/* by ibv_close_device(3); under lists_lock */
	pthread_mutex_t lock;
	/* NULL until the first packet resource; set under lock, then constant */
	struct port *port;
	/* the interface is gone: set once, after DEVICE_FATAL has been queued */
	_Atomic bool gone;
	bool inherited;		/* copy in a forked child; gone is set as well */
	struct fork_entry forks;
	struct link_watch *watch;
	struct link_cache *links;
	pthread_mutex_t async_lock; /* guards the next five */
	struct async_node *async_head, **async_tail;
	/* the eventfd: async_fd itself until signals are requested on it; -1 after async_end() */
	int async_event_fd;
	struct sigio *async_sigio; /* of async_fd from then on; else NULL */
	struct vchannel *channels;
	pthread_mutex_t ah_lock;	/* guards the next three */
	u64 ah_senders_until_ns;	/* until then no sender of a datagram is waited for */
	struct neigh_silent ah_silent;	/* of address vectors; emptied when the interface changes */
	struct neigh_cache ah_cache;	/* the same */
	/*
	 * last: the public context is its last member and has grown only at its front. Members that
	 * the header of the build lacks are in newer_ops; with a newer header, that is unused.
	 */
	struct newer_ops newer_ops;
	struct verbs_context v;
};

/*
 * Context and handle that an object got at its creation. The application can overwrite the public
 * fields. An object whose handle or context has changed is not found (ENOENT), as in the kernel.
 */
struct vid {
	struct ibv_context *context;
	u32 handle;
};
#define object_know(v) ((v)->id = (struct vid){ (v)->ibv.context, (v)->ibv.handle })
#define object_is_known(v)                                                                         \
	((v)->id.handle == (v)->ibv.handle && (v)->id.context == (v)->ibv.context)

struct vtd {
	struct ibv_td ibv;
	_Atomic u32 users;
};

struct vpd {
	struct ibv_pd ibv;
	struct vid id;
	/* MRs and QPs are compared by it; parent domains and imports have their PD's */
	u32 number;
	_Atomic u32 users;
	struct vpd *parent; /* of a parent domain: the underlying PD */
	struct vtd *td;	    /* of a parent domain, or NULL */
	struct memory_callbacks memory; /* a parent domain's allocators, or none */
	struct vlink listed; /* except for parent domains */
};

struct dm;

/* A handle of device memory: dm.c. */
struct vdm {
	struct newer_dm ibv;
	struct vid id;
	struct dm *dm;
	struct vlink listed;
};

/* Memory that the library has mapped for a region; otherwise `at` is NULL. */
struct mr_mapping {
	void *at;
	size_t length;
};

struct vdmah {
	struct newer_dmah ibv;
	_Atomic u32 users; /* regions */
};

struct vmr {
	struct ibv_mr ibv;
	struct vid id;
	struct mr *mr;
	u32 access;
	struct dm *dm; /* device memory of the region, or NULL */
	struct vdmah *dmah; /* its hints, or NULL */
	/* of a dma-buf; unmapped with the region, by whichever handle */
	struct mr_mapping mapping;
	struct vlink listed;
};

struct vmw {
	struct ibv_mw ibv;
	struct vid id;
	struct mr *mw;
};

struct xrc_domain;

struct vxrcd {
	struct ibv_xrcd ibv;
	struct xrc_domain *domain;
	struct fork_entry forks;
	_Atomic u32 users;	   /* SRQs and XRC_RECV QPs */
};

struct vchannel {
	struct ibv_comp_channel ibv;
	struct port_channel *pc;
	pthread_mutex_t lock; /* guards the fields below, up to sigio */
	struct vcq *head, **tail;
	bool raised;	      /* the descriptor is readable because the queue is not empty */
	bool left_fd;	      /* ibv.fd is no longer pc's: port_channel_leave_fd() */
	int pc_fd;	      /* then: pc's descriptor */
	struct sigio *sigio;  /* of ibv.fd, once signals are requested on it; else NULL */
	struct fork_entry forks;
	struct vchannel *next; /* next channel of the context */
};

struct vcq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	u8 slack[VERBS_SLACK];
	struct vid id;
	struct cq cq;
	struct vlock lock;
	u32 yield_polls;	   /* option XROCE_YIELD */
	struct vchannel *channel;
	u32 vector;		   /* completion vector: < num_comp_vectors */
	/* the next three under lock */
	const struct cqe *current; /* between start_poll and end_poll */
	s64 wall_ahead_ns;	   /* wall clock minus the completions' clock */
	u64 wall_ns;		   /* last wall-clock time read */
	_Atomic u32 users;	   /* QPs, and SRQs with completions here */
	bool joined;		   /* to the port's arm-word map; under vcontext.lock */
	struct fork_entry forks;
	struct vpd *domain;	   /* parent domain given to ibv_create_cq_ex(), or NULL */
	/* under channel->lock */
	struct vcq *event_next;
	u32 events_pending;	   /* on the channel's queue while not 0 */
	u32 comp_delivered;
	u32 async_delivered;	   /* under vcontext.async_lock */
};

struct vsrq {
	struct ibv_srq ibv;
	u8 slack[VERBS_SLACK];
	struct vid id;
	struct srq srq;
	struct vlock lock;
	_Atomic u32 users;	   /* QPs */
	u32 async_delivered;	   /* under vcontext.async_lock */
	struct fork_entry forks;
	bool is_found;		   /* XRC: requests find it; under the port's lock */
	struct vxrcd *xrcd;	   /* XRC, else NULL */
	/* XRC and tag matching, else NULL */
	struct vcq *cq;
	struct port *port;
};

/* A completion counter: comp_cntr.c. */
struct vcomp_cntr {
	struct newer_comp_cntr ibv;
	struct vid id;
	struct comp_cntr cntr;
	_Atomic u32 users; /* operations of QPs */
};

struct vqp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	u8 slack[VERBS_SLACK];
	struct vid id;
	struct qp *qp;
	struct port *port;
	struct vxrcd *xrcd;	   /* XRC_RECV, else NULL */
	struct vtable *table;	   /* work queues that receive its frames, or NULL */
	/* next handle of the XRC_RECV QP (ibv_open_qp(3)), in a ring; under the port's lock */
	struct vqp *sibling;
	struct vlock sq_lock, rq_lock;
	void *sq_memory, *rq_memory; /* from its domain's allocator, or NULL */
	struct vcomp_cntr *counters[COUNTED_OPS]; /* under the port's lock; NULL for most */
	bool is_ex;		   /* created with send_ops_flags: ibv_qp_to_qp_ex() succeeds */
	_Atomic u32 qkey;	   /* for sends with a Q_Key whose top bit is set */
	/* the last one given to ibv_modify_qp(); under the port's lock */
	struct ibv_ah_attr ah_attr;
	struct ibv_qp_init_attr init;
	/* ibv_wr_*(): between wr_start and wr_complete, under sq_lock */
	struct send_wqe *wr_current;
	u32 wr_count;
	int wr_error;
	bool wr_binds;		   /* binds windows: their keys change when the list is posted */
	u32 async_delivered;	   /* under vcontext.async_lock */
	struct fork_entry forks;
};

/* A work queue: wq.c. */
struct vwq {
	struct ibv_wq ibv;
	u8 slack[VERBS_SLACK];
	struct vid id;
	struct qp *qp;
	struct port *port;
	struct vlock lock;
	void *memory;		   /* from its domain's allocator, or NULL */
	_Atomic u32 users;	   /* entries in tables */
	u32 async_delivered;	   /* under vcontext.async_lock */
	struct fork_entry forks;
};

/* An indirection table; constant, as are its work queues while the table exists. */
struct vtable {
	struct ibv_rwq_ind_table ibv;
	struct vid id;
	_Atomic u32 users;	   /* QPs */
	u32 num;
	struct vwq *wq[];
};

/* A flow of a raw packet QP: flow.c. */
struct vflow {
	struct ibv_flow ibv;
	struct vid id;
	struct vqp *vqp;
	struct port_flow *flow;	    /* NULL once the flow has ended with its file */
	struct vcounters *counters; /* its counters, or NULL */
	struct fork_entry forks;
};

struct vah {
	struct ibv_ah ibv;
	struct vid id;
	struct path path;
	u32 flow_label; /* as given: determines the UDP source port */
};

static inline struct vdevice *to_vdevice(struct ibv_device *d)
{
	return container_of(d, struct vdevice, ibv);
}

static inline struct vcontext *to_vcontext(struct ibv_context *c)
{
	return container_of(c, struct vcontext, v.context);
}

static inline struct vpd *to_vpd(struct ibv_pd *pd)
{
	return container_of(pd, struct vpd, ibv);
}

static inline struct vmr *to_vmr(struct ibv_mr *mr)
{
	return container_of(mr, struct vmr, ibv);
}

static inline struct vcq *to_vcq(struct ibv_cq *cq)
{
	return container_of(cq, struct vcq, ibv);
}

/* XRC QPs lack one CQ or both. */
static inline struct vcq *to_vcq_or_null(struct ibv_cq *cq)
{
	return cq ? to_vcq(cq) : NULL;
}

static inline struct vcq *to_vcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct vcq, ex);
}

static inline struct vqp *to_vqp(struct ibv_qp *qp)
{
	return container_of(qp, struct vqp, ibv);
}

static inline struct vqp *to_vqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vqp, ex);
}

static inline struct vwq *to_vwq(struct ibv_wq *wq)
{
	return container_of(wq, struct vwq, ibv);
}

static inline struct vtable *to_vtable(struct ibv_rwq_ind_table *table)
{
	return container_of(table, struct vtable, ibv);
}

static inline struct vsrq *to_vsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct vsrq, ibv);
}

/* Returns the CQ of the QP's receives, or NULL; with a tag-matching SRQ, the SRQ's CQ. */
static inline struct vcq *vqp_recv_cq(const struct vqp *vqp)
{
	return vqp->ibv.srq && to_vsrq(vqp->ibv.srq)->srq.tags ? to_vsrq(vqp->ibv.srq)->cq :
								 to_vcq_or_null(vqp->ibv.recv_cq);
}

static inline struct vxrcd *to_vxrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct vxrcd, ibv);
}

static inline struct vah *to_vah(struct ibv_ah *ah)
{
	return container_of(ah, struct vah, ibv);
}

static inline struct vchannel *to_vchannel(struct ibv_comp_channel *ch)
{
	return container_of(ch, struct vchannel, ibv);
}

/* Returns zeroed memory for an object whose rings start on cache lines; free() it. */
static inline void *new_object(size_t bytes)
{
	size_t rounded = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	void *p = aligned_alloc(CACHE_LINE, rounded);

	return p ? memset(p, 0, rounded) : NULL;
}

/* Returns NULL with errno set, as verbs that create an object fail. */
static inline void *verb_fail(int err)
{
	errno = err;
	return NULL;
}

/* Returns -1 with errno set. */
static inline int verb_fail_int(int err)
{
	errno = err;
	return -1;
}

/* Returns err, and sets errno to it as rdma-core does, for verbs that return an errno value. */
static inline int verb_report(int err)
{
	if (err)
		errno = err;
	return err;
}

/* fault.c: faults on request */
/* Whether rules of XROCE_FAULT hold; set before the first context is made. */
extern bool faults_are_on;
/* Reads the rules, once. Returns 0, or a positive errno after a line on standard error. */
int faults_load(void);
/* Counts a call: returns true with errno set if a rule fails it. context may be NULL. */
rare bool fault_fails(struct ibv_context *context, enum lab_call call);
static inline bool verb_fails(struct ibv_context *context, enum lab_call call)
{
	return unlikely(faults_are_on) && fault_fails(context, call);
}
/* With faults: counts a new QP, and replaces calls that may fail. */
void fault_know(const struct vqp *vqp);
void fault_set_ops(struct ibv_context_ops *ops);

/* context.c: devices */
/* Adds or subtracts one object of its kind. device_take() returns 0, or ENOMEM at the limit. */
int device_take(struct ibv_context *context, enum vlimit kind);
void device_give(struct ibv_context *context, enum vlimit kind);
/* True if the device is in a list or held by a context of this process. */
bool device_is_known(const struct ibv_device *device);
void device_get(struct vdevice *dev);
void device_put(struct vdevice *dev);

/* context.c */
u32 new_handle(void); /* unique in the process, never 0 */
void context_get(struct vcontext *ctx);
void context_put(struct vcontext *ctx);
/*
 * True if the interface is gone, or this is a forked child's copy: every verb that needs the
 * interface fails with EIO. The acquire pairs with the release in events.c: DEVICE_FATAL is queued.
 */
static inline bool context_gone(struct ibv_context *context)
{
	return atomic_load_explicit(&to_vcontext(context)->gone, memory_order_acquire);
}
/*
 * The same, except for a child's copy, which still serves calls that use nothing of the parent's.
 */
static inline bool context_interface_gone(struct ibv_context *context)
{
	return context_gone(context) && !to_vcontext(context)->inherited;
}
/*
 * Fills in the interface's current state, most of all its addresses (os/netdev_cache.h). Returns 0
 * or a positive errno; EIO if the interface is gone.
 */
int context_netdev(struct ibv_context *context, struct netdev *nd);
/* The same with carrier, speed and queues, which are read from the kernel each time. */
int context_netdev_link(struct ibv_context *context, struct netdev *nd);
/* Returns the context's port, or NULL if it has none yet. */
static inline struct port *context_made_port(struct vcontext *ctx)
{
	/* acquire: pairs with the release in context_port() */
	return atomic_load_explicit(shared_word(&ctx->port), memory_order_acquire);
}
/*
 * Returns the port of the context's device, created at the first call. Returns 0 or a positive
 * errno; the port printed the reason on standard error.
 */
int context_port(struct vcontext *ctx, struct port **out);

/* newer.c: sets v.sz and the members of the table that older headers lack. */
void context_set_newer_ops(struct vcontext *ctx);

/* query.c: the verbs_context ops */
int query_port_op(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
		  size_t len);
int query_device_ex_op(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t size);
/* rdma-core's private type of a GID, as in sysfs. */
enum gid_type_sysfs { GID_TYPE_SYSFS_IB_ROCE_V1, GID_TYPE_SYSFS_ROCE_V2 };
/* ibv_query_gid_type() of the private nodes: returns 0, or -1 with errno set. */
int query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		   enum gid_type_sysfs *type);
/* ibv_wr_opcode_str() of the private nodes. */
const char *wr_opcode_str(enum ibv_wr_opcode opcode);
int query_rt_values_op(struct ibv_context *context, struct ibv_values_ex *values);
int modify_qp_rate_limit_op(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr);
/* The largest path MTU, in bytes, currently possible on the device. */
u32 device_path_mtu(struct vcontext *ctx, const struct netdev *nd);
enum ibv_mtu mtu_to_enum(u32 bytes);

/* domain.c */
struct ibv_td *alloc_td_op(struct ibv_context *context, struct ibv_td_init_attr *attr);
int dealloc_td_op(struct ibv_td *td);
struct ibv_pd *alloc_parent_domain_op(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr);
/*
 * The number of users of an object, which cannot be destroyed while it has any. release: pairs with
 * the acquire in users_left(): the last user's accesses come before the object's destruction.
 */
static inline void users_count(_Atomic u32 *users, int by)
{
	atomic_fetch_add_explicit(users, (u32)by, memory_order_release);
}
static inline u32 users_left(_Atomic u32 *users)
{
	return atomic_load_explicit(users, memory_order_acquire);
}

static inline void pd_use(struct vpd *pd)
{
	users_count(&pd->users, 1);
}

static inline void pd_unuse(struct vpd *pd)
{
	users_count(&pd->users, -1);
}

/* cq.c */
struct ibv_cq_ex *create_cq_ex_op(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int poll_cq_op(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int req_notify_cq_op(struct ibv_cq *cq, int solicited_only);
int modify_cq_op(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* Joins the port, before the CQ's first QP. Returns 0 or a positive errno. */
int cq_join(struct vcq *vcq, struct port *port);
/* Lock the consumers' sides of a QP's CQs, in a fixed order. Either may be NULL. */
void cq_lock_two(struct vcq *a, struct vcq *b);
void cq_unlock_two(struct vcq *a, struct vcq *b);

/* events.c: completion channels */
/* Queues an event: an armed CQ has a new completion. The caller may hold a shard's lock. */
void channel_event(struct vcq *vcq);
/* Wakes the threads on the channel: the device is gone. The caller holds async_lock. */
void channel_wake(struct vchannel *ch);
/* Removes the CQ's queued events and waits until all delivered ones are acknowledged. */
void channel_forget(struct vcq *vcq);

/* events.c: asynchronous events */
void async_init(struct vcontext *ctx);
void async_free(struct vcontext *ctx);
/* Closes async_fd before async_free(): no event follows. The device is gone for the context. */
void async_end(struct vcontext *ctx);
/* For a forked child: drops the parent's events; no others follow. again: its child in turn. */
void async_abandon(struct vcontext *ctx, bool again);
/* The port's event handler. */
void async_engine_event(const struct engine_event *event);
void async_queue(struct vcontext *ctx, enum ibv_event_type type, void *object);
/* Queues an event of the port. */
void async_queue_port(struct vcontext *ctx, enum ibv_event_type type);
/* Queues DEVICE_FATAL, as the interface is gone; no call on this context waits from then on. */
void async_device_fatal(struct vcontext *ctx);
/*
 * Removes an object's queued events and waits until all delivered ones are acknowledged. delivered:
 * their number; completed: the public count, under the public mutex.
 */
void async_forget(struct vcontext *ctx, const void *object, const u32 *delivered,
		  pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed);

/* qp.c, qp_modify.c */
struct ibv_qp *create_qp_ex_op(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* Like xroce_create_qp1() (xroce_cm.h). */
struct ibv_qp *create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *open_qp_op(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/*
 * Move the QP to RESET, from any state. qp_reset_locked(): the caller holds the port's lock and the
 * consumers' sides of the QP's CQs.
 */
void qp_reset(struct vqp *vqp);
void qp_reset_locked(struct vqp *vqp);

/* comp_cntr.c: the QP is destroyed and counts no more. */
void comp_cntrs_leave(struct vqp *vqp);

/* wq.c */
struct ibv_wq *create_wq_op(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int modify_wq_op(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int destroy_wq_op(struct ibv_wq *wq);
struct ibv_rwq_ind_table *create_rwq_ind_table_op(struct ibv_context *context,
						  struct ibv_rwq_ind_table_init_attr *attr);
int destroy_rwq_ind_table_op(struct ibv_rwq_ind_table *table);
/*
 * Creates the spreading rule of a QP with these attributes, which include a table or a hash.
 * Returns 0 or a positive errno.
 */
int table_make_rss(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr,
		   struct rss **rss);

/* flow.c */
struct ibv_flow *create_flow_op(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int destroy_flow_op(struct ibv_flow *flow);

/* flow.c: counters */
struct vcounters;
struct ibv_counters *create_counters_op(struct ibv_context *context,
					struct ibv_counters_init_attr *attr);
int destroy_counters_op(struct ibv_counters *counters);
int attach_counters_point_flow_op(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int read_counters_op(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags);

/* post.c, wr.c */
int post_send_op(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
/* The same; IBV_WR_BIND_MW takes windows of type bindable. */
int post_send_list(struct vqp *vqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
		   enum ibv_mw_type bindable);
int post_recv_op(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int post_wq_recv_op(struct ibv_wq *wq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int post_srq_recv_op(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/*
 * Checks whether the QP takes sends. Returns 0; EINVAL if its state is before RTS or it never
 * sends; EIO if the device is gone.
 */
int qp_refuses_sends(struct vqp *vqp);
/* Fills in the UD part of a WQE. */
void wqe_set_ud(struct vqp *vqp, struct send_wqe *wqe, const struct vah *ah, u32 remote_qpn,
		u32 remote_qkey);
/* send_ops_flags possible for QPs of this transport. */
u64 wr_supported_ops(enum xroce_transport transport);
void wr_set_ops(struct vqp *vqp, u64 ops);

/* ah.c */
/*
 * Checks and resolves an address vector, or returns a result that is at most a tenth of a second
 * old. timeout_ms: as for netdev_resolve(). Returns 0 or a positive errno. Holds no lock while it
 * waits for a neighbour.
 */
int ah_resolve(struct vcontext *ctx, const struct ibv_ah_attr *attr, int timeout_ms,
	       struct path *path);
/* Empties the cache after a change of the interface. */
void ah_cache_forget(struct vcontext *ctx);

/* srq.c */
struct ibv_srq *create_srq_ex_op(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int get_srq_num_op(struct ibv_srq *srq, uint32_t *srq_num);
int post_srq_ops_op(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/* domain.c: XRC domains */
struct ibv_xrcd *open_xrcd_op(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int close_xrcd_op(struct ibv_xrcd *xrcd);
/* The number that the engine compares; never 0. */
u32 xrcd_number(const struct vxrcd *vxrcd);

/* dm.c */
struct ibv_dm *alloc_dm_op(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int free_dm_op(struct ibv_dm *dm);
struct ibv_mr *reg_dm_mr_op(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			    unsigned int access);
/* Add a region, under lists_lock; remove one, which may free dm. */
void dm_use(struct dm *dm);
void dm_unuse(struct dm *dm);

/* mr.c */
struct ibv_mr *alloc_null_mr_op(struct ibv_pd *pd);
/*
 * Registers device memory. The caller has counted the use of dm, which passes to the region unless
 * this fails. Returns NULL with errno set on failure.
 */
struct ibv_mr *mr_reg_dm(struct ibv_pd *pd, struct dm *dm, void *bytes, size_t length,
			 unsigned int access);
/* Registers mapped memory. The region owns the mapping, except on failure. */
struct ibv_mr *mr_reg_mapping(struct ibv_pd *pd, const struct mr_mapping *mapping, void *addr,
			      size_t length, u64 iova, unsigned int access);
void mr_unmap(struct mr_mapping *mapping);

/* mr.c: on-demand paging */
void odp_query_caps(struct ibv_device_attr_ex *attr);
int advise_mr_op(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge);

/* mr.c: memory windows */
struct ibv_mw *alloc_mw_op(struct ibv_pd *pd, enum ibv_mw_type type);
int dealloc_mw_op(struct ibv_mw *mw);
int bind_mw_op(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/*
 * Fills in a WQE's bind part. Returns 0 or EINVAL. The caller sets the window's key to
 * bind.new_key.
 */
int wqe_set_bind(struct send_wqe *wqe, const struct ibv_mw *mw, u32 rkey,
		 const struct ibv_mw_bind_info *info);

#endif
