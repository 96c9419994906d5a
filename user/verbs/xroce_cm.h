/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What our librdmacm.so.1 needs of our libibverbs.so.1 beside the public verbs: QP 1, a range of
 * communication ids, and services. Exported under XROCE_PRIVATE_1, which changes with the library:
 * not for programs.
 *
 * All of it is of the interface of the context's device, and of this process; several contexts of
 * one device share it. Calls that return int return 0 or a positive errno. EIO: the interface has
 * gone, or the context is a copy of the parent's in a forked child. The first call of a context
 * makes its port (ibv_create_qp(3) does the same), whose errno it returns then.
 */
#ifndef VERBS_XROCE_CM_H
#define VERBS_XROCE_CM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The Q_Key of QP 1: what its QP is given (ibv_modify_qp(3)), and what its work requests say. */
#define XROCE_CM_QKEY 0x80010000u

/*
 * A UD QP with number 1, in RESET, driven by the public verbs; ibv_destroy_qp(3) ends it. NULL with
 * errno set: EBUSY, this process has one on the interface; EINVAL, attr->qp_type is not
 * IBV_QPT_UD; or what ibv_create_qp(3) says.
 *
 * What it sends to an address of this interface comes back to the process whose it is.
 */
struct ibv_qp *xroce_create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/*
 * The communication ids of this process on the interface: *num_ids from *first_id on, a power of
 * two, aligned to it. No other process of the interface has any of them. They stay the same while
 * the context is open.
 */
int xroce_cm_place(struct ibv_context *context, uint32_t *first_id, uint32_t *num_ids);

enum { XROCE_CM_IPV4 = 1, XROCE_CM_IPV6 = 2 };

struct xroce_cm_service {
	uint64_t id;
	union ibv_gid address; /* that is asked for; 0: any of the families */
	uint8_t families;      /* XROCE_CM_*; of an address its own, or 0 */
};

/*
 * Requests for the service come to this process. EINVAL: no family with the address 0, or one that
 * does not exist. EADDRINUSE: another process of the interface has it, or one that overlaps it: the
 * same service at the same address, or at any of its family. EACCES: a port for root alone. EDQUOT:
 * this user has as many as it may have; ENOSPC, ENOMEM: there are no more. A service that this
 * process has bound is counted, and is to be unbound as often.
 */
int xroce_cm_bind(struct ibv_context *context, const struct xroce_cm_service *service);
/* ENOENT: it is not bound by this process. */
int xroce_cm_unbind(struct ibv_context *context, const struct xroce_cm_service *service);

/*
 * This process listens to the service, or does not any more: for `xroce list`. Requests come where
 * it is bound, whether it is shown or not. Neither waits for anybody, once the port was made.
 */
int xroce_cm_show(struct ibv_context *context, const struct xroce_cm_service *service);
int xroce_cm_hide(struct ibv_context *context, const struct xroce_cm_service *service);

/*
 * As ibv_create_ah(3) without waiting for the neighbour: EHOSTUNREACH if the kernel does not know
 * the neighbour now. ask: the kernel is to resolve the neighbour then. mac: the next hop's.
 */
struct ibv_ah *xroce_cm_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, bool ask,
				  uint8_t mac[6]);

/*
 * The peer's next hop has had this MAC. For a second, an address vector of this peer that the
 * calling thread resolves takes it, without waiting, if the kernel does not know the neighbour.
 */
void xroce_cm_heard(const union ibv_gid *peer, const uint8_t mac[6]);

/* Counts a MAD that librdmacm did not answer, in the maps of the context's port. */
enum xroce_cm_count { XROCE_CM_SILENT, XROCE_CM_HALF_OPEN };
void xroce_cm_count(struct ibv_context *context, enum xroce_cm_count what);

/* The index of the device's interface, 0 if the device is not this library's. */
int xroce_device_ifindex(struct ibv_device *device);

#endif
