/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The public verbs of our libibverbs.so.1, loaded on demand: `xroce bench` and `xroce ping` measure
 * the same library that `xroce run` gives a program. Inline functions of <infiniband/verbs.h>
 * (posting, polling) go through the context and need no entry here. With a device, and a UD queue
 * pair of one.
 */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include <infiniband/verbs.h>

#include "../cli.h"
#include "../../verbs/xroce_cm.h"

/* X(name without ibv_, returned type, arguments) */
#define VERBS_CALLS(X)                                                                           \
	X(get_device_list, struct ibv_device **, (int *))                                        \
	X(free_device_list, void, (struct ibv_device **))                                        \
	X(get_device_name, const char *, (struct ibv_device *))                                  \
	X(open_device, struct ibv_context *, (struct ibv_device *))                              \
	X(close_device, int, (struct ibv_context *))                                             \
	X(query_port, int, (struct ibv_context *, u8, struct _compat_ibv_port_attr *))           \
	X(query_gid, int, (struct ibv_context *, u8, int, union ibv_gid *))                      \
	X(alloc_pd, struct ibv_pd *, (struct ibv_context *))                                     \
	X(dealloc_pd, int, (struct ibv_pd *))                                                    \
	X(reg_mr, struct ibv_mr *, (struct ibv_pd *, void *, size_t, int))                       \
	X(dereg_mr, int, (struct ibv_mr *))                                                      \
	X(create_comp_channel, struct ibv_comp_channel *, (struct ibv_context *))                \
	X(destroy_comp_channel, int, (struct ibv_comp_channel *))                                \
	X(create_cq, struct ibv_cq *, (struct ibv_context *, int, void *,                        \
				       struct ibv_comp_channel *, int))                          \
	X(destroy_cq, int, (struct ibv_cq *))                                                    \
	X(get_cq_event, int, (struct ibv_comp_channel *, struct ibv_cq **, void **))             \
	X(ack_cq_events, void, (struct ibv_cq *, unsigned int))                                  \
	X(create_qp, struct ibv_qp *, (struct ibv_pd *, struct ibv_qp_init_attr *))              \
	X(modify_qp, int, (struct ibv_qp *, struct ibv_qp_attr *, int))                          \
	X(destroy_qp, int, (struct ibv_qp *))                                                    \
	X(create_ah, struct ibv_ah *, (struct ibv_pd *, struct ibv_ah_attr *))                   \
	X(create_ah_from_wc, struct ibv_ah *, (struct ibv_pd *, struct ibv_wc *,                 \
					       struct ibv_grh *, u8))                            \
	X(destroy_ah, int, (struct ibv_ah *))                                                    \
	X(wc_status_str, const char *, (enum ibv_wc_status))

/* Symbols of version XROCE_PRIVATE_1: user/verbs/xroce_cm.h. */
#define VERBS_PRIVATE_CALLS(X)                                                                   \
	X(create_qp1, struct ibv_qp *, (struct ibv_pd *, struct ibv_qp_init_attr *))             \
	X(cm_place, int, (struct ibv_context *, u32 *, u32 *))                                   \
	X(cm_bind, int, (struct ibv_context *, const struct xroce_cm_service *))

struct verbs {
#define VERBS_MEMBER(name, type, arguments) type(*name) arguments;
	VERBS_CALLS(VERBS_MEMBER)
	VERBS_PRIVATE_CALLS(VERBS_MEMBER)
#undef VERBS_MEMBER
};

/* Filled by verbs_load(). */
extern struct verbs verbs;

/*
 * Loads the library, once. Returns EXIT_OK, or EXIT_FAILED after a line on standard error that
 * begins with the command's name.
 */
int verbs_load(const struct command *command);

/* An open device of an interface, with one of its GIDs. */
struct device {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	char name[IF_NAMESIZE]; /* of the interface */
	struct gid gid;
	u8 gid_index;
	u32 mtu;		/* active MTU in bytes */
};

/*
 * Opens the device of an interface; gid is one of its GIDs. Returns EXIT_OK, or EXIT_FAILED after
 * an error message. verbs_load() must have succeeded. device_close() ignores an all-zero device.
 */
int device_open(const struct command *command, const char *iface, const struct gid *gid,
		struct device *dev);
void device_close(struct device *dev);

/* Returns the address handle of a peer, or NULL with errno set, for example without a route. */
struct ibv_ah *device_create_ah(const struct device *dev, const struct gid *peer);
struct ibv_ah_attr device_ah_attr(const struct device *dev, const struct gid *peer);

/*
 * A UD queue pair with its buffers, for single round trips: QP 1, which exchanges MADs, or an
 * ordinary one. Waits on a completion channel.
 */

#define DATAGRAM_SLOTS 256u
#define DATAGRAM_GRH   40u
#define DATAGRAM_MOST  4096u

struct datagrams {
	const struct device *dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	u8 *memory;	/* receive slots, then send slots */
	u32 slot_bytes; /* of each slot, with room for a GRH */
	u32 qkey;
	u32 sent, done; /* sends posted and completed */
};

/* A received datagram. All zero before the first datagrams_take(). */
struct datagram {
	struct ibv_wc wc;
	struct gid from;
	const u8 *data;
	u32 len;
};

/*
 * is_qp1: QP 1, for MADs of CM_MAD_BYTES. qkey: of this QP and of the peer's. Returns 0 or -errno;
 * -EBUSY: this process already has a QP 1 there. datagrams_free() ignores an all-zero one.
 */
int datagrams_make(const struct device *dev, bool is_qp1, u32 qkey, u32 most_bytes,
		   struct datagrams *d);
void datagrams_free(struct datagrams *d);

/*
 * Sends len bytes, copied from data, to a queue pair. Returns 0, -EAGAIN (the send queue is full)
 * or -errno.
 */
int datagrams_send(struct datagrams *d, struct ibv_ah *ah, u32 qpn, const void *data, u32 len);

/*
 * Takes the next datagram; datagram->data is valid until the next datagrams_take() or
 * datagrams_give_back() with it. Returns 1; 0: none; -EIO: the device is gone.
 */
int datagrams_take(struct datagrams *d, struct datagram *datagram);
/* Posts the datagram's slot again. Returns 0 or -EIO. */
int datagrams_give_back(struct datagrams *d, struct datagram *datagram);
/* Sleeps until a datagram may have arrived, timeout_ns at most, or until a signal. */
void datagrams_wait(struct datagrams *d, u64 timeout_ns);
void datagrams_wait_both(struct datagrams *a, struct datagrams *b, u64 timeout_ns);

/* Waits briefly for all sends to complete, so that address handles can be destroyed. */
void datagrams_settle(struct datagrams *d);

#endif
