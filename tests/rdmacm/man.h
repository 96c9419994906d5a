/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs named by subjects of librdmacm's man pages (man_*.c) share: the addresses of
 * one device, events taken in bounded time, and two connected ids of this process. Each case holds
 * the library to sentences of the pages. Where these are silent, or the kernel's CM does otherwise,
 * a case states what the kernel does.
 */
#ifndef TESTS_RDMACM_MAN_H
#define TESTS_RDMACM_MAN_H

#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <unistd.h>

#include "../common/open_fds.h"
#include "../verbs/contract.h"

/* Each program has one list. */
extern const struct test_case man_cases[];

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

/* Ports are in host byte order. */
union address own(int family, uint16_t port);
/* Writes the device's address as text into host, of INET6_ADDRSTRLEN bytes. Returns host. */
const char *own_text(int family, char *host);
union address wild(int family, uint16_t port);
/* An address of the device's network with this last byte. */
union address other(int family, uint8_t last, uint16_t port);
#define SILENT 77 /* its neighbour entry is permanent, and the link address is unused */
#define ABSENT 99 /* it has no neighbour entry, and does not answer */
uint16_t port_of(const struct sockaddr *sa);
/* Family and address, not the port. */
bool same_host(const struct sockaddr *a, const union address *b);

/* ---- events ---- */

/* The next event within bounded time, not acknowledged. NULL if none comes. */
struct rdma_cm_event *next_event(struct rdma_event_channel *ch);
/* Takes and acknowledges an event, which must be this one. */
bool take_status(struct rdma_event_channel *ch, const struct rdma_cm_id *id,
		 enum rdma_cm_event_type type, int status);
bool take(struct rdma_event_channel *ch, const struct rdma_cm_id *id, enum rdma_cm_event_type type);
/* The same with any negative status. */
bool take_error(struct rdma_event_channel *ch, const struct rdma_cm_id *id,
		enum rdma_cm_event_type type, int *status);
/* True if no event is pending, by a non-blocking get. */
bool no_event(struct rdma_event_channel *ch);

/* ---- ids ---- */

/* Bound to that address and listening; its context is &listen_context. */
extern char listen_context;
struct rdma_cm_id *listener(struct rdma_event_channel *ch, enum rdma_port_space ps,
			    union address at, int backlog);
/*
 * A QPN that no connection has used before: one that another connection still has, perhaps in
 * TIMEWAIT, would be refused as stale (IBA 12.9.8.3.1).
 */
uint32_t fresh_qpn(void);
/* Returns an id that gets ADDR_RESOLVED on this channel, which is its context too; or NULL. */
struct rdma_cm_id *resolving(struct rdma_event_channel *ch, int family);
/* Its address and its route are resolved. */
struct rdma_cm_id *resolved(struct rdma_event_channel *ch, enum rdma_port_space ps,
			    union address to);
/* Returns rdma_getaddrinfo()'s result for our address and this port. NULL: none. Type 0: any. */
struct rdma_addrinfo *own_info(int family, uint16_t port, int flags, int ps, int type);
/* A QP of the id's type on the default PD, with CQs that the library makes. */
int create_qp(struct rdma_cm_id *id);
int qp_state_now(struct ibv_qp *qp);

/* Two ends in one process: end 0 connects, end 1 accepts; each has a channel. */
struct link {
	struct rdma_event_channel *ch[2];
	struct rdma_cm_id *listen, *id[2];
	struct rdma_cm_event *request; /* not acknowledged yet */
	bool no_qp;		       /* the ends have no QPs on their ids */
	bool own_qp;		       /* the case made the passive end's QP before link_accept() */
};

/* The listener, and end 0 with its route resolved and its QP. */
bool link_open(struct link *l, int family, enum rdma_port_space ps);
/* A message of connection parameters that are all different from the defaults. */
struct rdma_conn_param some_param(const void *data, uint8_t len);
/* rdma_connect(), and the request is taken; end 1 exists then. */
bool link_request(struct link *l, struct rdma_conn_param *param);
/* Its QP and rdma_accept(); the request is acknowledged. */
bool link_accept(struct link *l, struct rdma_conn_param *param);
/* ESTABLISHED at both ends. */
bool link_established(struct link *l);
/* All of that with parameters of the library's choice. */
bool link_up(struct link *l, int family);
/* Also after a failed case: takes down what there is. */
bool link_close(struct link *l);
/* One end's id and its QP. */
bool link_drop(struct link *l, int end);

/* rdma_destroy_id() and rdma_migrate_id() in a thread (contract.h: destroy_begins). */
int destroy_id(void *id);

/* A case of each family. */
#define BOTH(name)                                                                                 \
	static bool name##_v4(void)                                                                \
	{                                                                                          \
		return name(AF_INET);                                                              \
	}                                                                                          \
	static bool name##_v6(void)                                                                \
	{                                                                                          \
		return name(AF_INET6);                                                             \
	}

/* The body of a case that runs on a link. */
#define ON_LINK(name, body)                                                                        \
	static bool name(int family)                                                               \
	{                                                                                          \
		struct link l = { 0 };                                                             \
		bool good = body(&l, family);                                                      \
                                                                                                   \
		return link_close(&l) && good;                                                     \
	}                                                                                          \
	BOTH(name)

/* The call must return -1 and this errno. */
#define MUST_ERR(call, want)                                                                       \
	do {                                                                                       \
		int r_, e_;                                                                        \
		errno = 0;                                                                         \
		r_ = (call);                                                                       \
		e_ = errno;                                                                        \
		if (r_ != -1 || e_ != (want)) {                                                    \
			printf("# %s:%d: %s: %d, errno %d (%s), not -1, %d\n", __FILE__, __LINE__, \
			       #call, r_, e_, strerror(e_), (want));                               \
			return false;                                                              \
		}                                                                                  \
	} while (0)

#endif
