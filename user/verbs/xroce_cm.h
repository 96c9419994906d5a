/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private calls from our librdmacm.so.1 into our libibverbs.so.1: QP 1, a range of communication
 * ids, and services. Exported under XROCE_PRIVATE_1, which changes with the library: not for
 * programs.
 *
 * All calls apply to the interface of the context's device and to this process; several contexts of
 * one device share the state. Calls that return int return 0 or a positive errno. EIO: the
 * interface is gone, or the context is a copy in a forked child. The first call on a context
 * creates its port, as ibv_create_qp(3) does, and returns errors of that.
 */
#ifndef VERBS_XROCE_CM_H
#define VERBS_XROCE_CM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* The Q_Key of QP 1, for its QP (ibv_modify_qp(3)) and its work requests. */
#define XROCE_CM_QKEY 0x80010000u

/*
 * Creates a UD QP with number 1, in RESET, driven by the public verbs; ibv_destroy_qp(3) destroys
 * it. Returns NULL with errno set: EBUSY, this process has one on the interface; EINVAL,
 * attr->qp_type is not IBV_QPT_UD; or an error of ibv_create_qp(3).
 *
 * Packets to an address of this interface return to the process that owns their destination.
 */
struct ibv_qp *xroce_create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/*
 * Returns the communication ids of this process on the interface: *num_ids from *first_id on, a
 * power of two and aligned to it. No other process on the interface has any of them. They stay the
 * same while the context is open.
 */
int xroce_cm_place(struct ibv_context *context, uint32_t *first_id, uint32_t *num_ids);

enum { XROCE_CM_IPV4 = 1, XROCE_CM_IPV6 = 2 };

struct xroce_cm_service {
	uint64_t id;
	union ibv_gid address; /* to listen on; 0: all addresses of the families */
	uint8_t families;      /* XROCE_CM_*; for an address its own family, or 0 */
};

/*
 * Directs requests for the service to this process. EINVAL: address 0 without a family, or an
 * unknown family. EADDRINUSE: another process on the interface has the same service at the same
 * address, or at all addresses of its family. EACCES: the port is reserved for root. EDQUOT: the
 * user is at its limit; ENOSPC, ENOMEM: no room. Binds of the same service by this process are
 * counted: unbind as often.
 */
int xroce_cm_bind(struct ibv_context *context, const struct xroce_cm_service *service);
/* ENOENT: not bound by this process. */
int xroce_cm_unbind(struct ibv_context *context, const struct xroce_cm_service *service);

/*
 * Start and stop showing the service in `xroce list`. Requests follow the bindings, shown or not.
 * Does not wait for other processes once the port exists.
 */
int xroce_cm_show(struct ibv_context *context, const struct xroce_cm_service *service);
int xroce_cm_hide(struct ibv_context *context, const struct xroce_cm_service *service);

/*
 * Like ibv_create_ah(3), but does not wait for the neighbour: EHOSTUNREACH if the kernel does not
 * know it now. ask: the kernel then starts to resolve it. mac: the next hop's MAC, returned.
 */
struct ibv_ah *xroce_cm_create_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr, bool ask,
				  uint8_t mac[6]);

/*
 * Records the MAC of the peer's next hop. For one second, the calling thread uses it, without
 * waiting, for address vectors of this peer if the kernel does not know the neighbour.
 */
void xroce_cm_heard(const union ibv_gid *peer, const uint8_t mac[6]);

/* Counts a MAD that librdmacm did not answer, in the maps of the context's port. */
enum xroce_cm_count { XROCE_CM_SILENT, XROCE_CM_HALF_OPEN };
void xroce_cm_count(struct ibv_context *context, enum xroce_cm_count what);

/*
 * Counts a REQ that has arrived. Returns the reason with which a rule of XROCE_FAULT rejects it, or
 * 0.
 */
uint16_t xroce_cm_reject(void);

/* Returns the ifindex of the device's interface, 0 if the device is not this library's. */
int xroce_device_ifindex(struct ibv_device *device);

#endif
