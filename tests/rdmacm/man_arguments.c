/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * Every export with arguments that no correct program gives: no pointer, no descriptor, -1, absurd
 * counts and flags. Where rdma-core and the kernel return an error or do nothing, so does this
 * library; where a bad pointer ends a program on rdma-core, there is no row.
 * tests/rdmacm/exports.sh checks that each export is named here. A bad pointer is the only bad
 * argument of
 *
 *     rdma_destroy_ep, rdma_destroy_event_channel, rdma_destroy_id
 *
 * and rdma_create_event_channel has no argument. The calls that came with rdma-core 60 and 65,
 * v_NAME here, are
 *
 *     rdma_query_addrinfo, rdma_resolve_addrinfo, rdma_write_cm_event,
 *     repoll_create, repoll_ctl, repoll_wait
 *
 * librspreload.so alone calls xroce_rsocket_ppoll, xroce_rsocket_stand_in, xroce_rsocket_unread and
 * xroce_rsocket_watch.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "../verbs/arguments.h"
#include "man.h"
#include "newer.h"

/* Returns an address of that family and nothing else. */
static union address of_family(sa_family_t family)
{
	return (union address){ .sa.sa_family = family };
}

/* ---- calls without an object ---- */

static bool nothing(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_context **none = calloc(1, sizeof(*none));
	bool good = true;

	MUST(list && none);
	rdma_free_devices(list);
	good &= RETURNS(rdma_free_devices(NULL));
	good &= RETURNS(rdma_free_devices(none));
	good &= RETURNS(rdma_freeaddrinfo(NULL));
	good &= ROW(rdma_ack_cm_event(NULL), -1, EINVAL);
	good &= !strcmp(rdma_event_str(-1), "UNKNOWN EVENT");
	good &= !strcmp(rdma_event_str(INT_MAX), "UNKNOWN EVENT");
	good &= ROW(rdma_set_local_ece(NULL, NULL), -1, EINVAL);
	good &= ROW(rdma_get_remote_ece(NULL, NULL), -1, EINVAL);
	return good;
}

static bool address_info(void)
{
	struct rdma_addrinfo hints = { .ai_flags = 0 }, *res;
	bool good = true;

	good &= ROW(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1, EINVAL);
	good &= ROW(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0, 0);
	good &= !res->ai_src_addr && !res->ai_dst_addr && !res->ai_next;
	rdma_freeaddrinfo(res);
	good &= ROW(rdma_getaddrinfo("10.0.0.1", "no such service", NULL, &res), EAI_SERVICE, 0);
	hints.ai_family = 99;
	good &= ROW(rdma_getaddrinfo("10.0.0.1", NULL, &hints, &res), EAI_FAMILY, 0);
	hints = (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST };
	good &= ROW(rdma_getaddrinfo("", NULL, &hints, &res), EAI_NONAME, 0);
	return good;
}

static bool endpoints(void)
{
	struct rdma_addrinfo res = { .ai_flags = 0 };
	struct rdma_cm_id *id;
	bool good = true;

	good &= ROW(rdma_create_ep(&id, &res, NULL, NULL), -1, EINVAL);
	res.ai_port_space = INT_MAX;
	good &= ROW(rdma_create_ep(&id, &res, NULL, NULL), -1, EINVAL);
	res = (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC };
	good &= ROW(rdma_create_ep(&id, &res, NULL, NULL), -1, EINVAL);
	res.ai_flags = RAI_PASSIVE;
	good &= ROW(rdma_create_ep(&id, &res, NULL, NULL), -1, EINVAL);
	return good;
}

/* ---- ids ---- */

static bool fresh_body(struct rdma_event_channel *ch, struct rdma_cm_id *id)
{
	union address none = of_family(0), absurd = of_family(99), local = own(AF_INET, 0);
	struct rdma_cm_join_mc_attr_ex join = { .comp_mask = 0 };
	struct ibv_qp_attr attr = { .qp_state = -1 };
	struct rdma_cm_id *other;
	bool good = true;
	char byte = 0;
	int mask;

	good &= ROW(rdma_create_id(ch, &other, NULL, 0), -1, EINVAL);
	good &= ROW(rdma_create_id(ch, &other, NULL, -1), -1, EINVAL);
	good &= ROW(rdma_get_cm_event(ch, NULL), -1, EINVAL);
	good &= ROW(rdma_bind_addr(id, NULL), -1, EINVAL);
	good &= ROW(rdma_bind_addr(id, &none.sa), -1, EINVAL);
	good &= ROW(rdma_bind_addr(id, &absurd.sa), -1, EINVAL);
	good &= ROW(rdma_resolve_addr(id, NULL, NULL, -1), -1, EINVAL);
	good &= ROW(rdma_resolve_addr(id, NULL, &absurd.sa, 1), -1, EINVAL);
	good &= ROW(rdma_resolve_addr(id, &none.sa, &local.sa, 1), -1, EINVAL);
	good &= ROW(rdma_resolve_addr(id, &absurd.sa, &local.sa, 1), -1, EINVAL);
	good &= ROW(rdma_disconnect(id), -1, EINVAL);
	good &= ROW(rdma_establish(id), -1, EINVAL);
	good &= ROW(rdma_get_request(id, &other), -1, EINVAL);
	good &= ROW(rdma_init_qp_attr(id, &attr, &mask), -1, EINVAL);
	good &= ROW(rdma_notify(id, -1), -1, EINVAL);
	good &= ROW(rdma_reject(id, NULL, UINT8_MAX), -1, EINVAL);
	good &= ROW(rdma_reject_ece(id, NULL, UINT8_MAX), -1, EINVAL);
	good &= ROW(rdma_join_multicast(id, NULL, NULL), -1, EINVAL);
	good &= ROW(rdma_join_multicast(id, &absurd.sa, NULL), -1, EINVAL);
	good &= ROW(rdma_leave_multicast(id, NULL), -1, EINVAL);
	good &= ROW(rdma_leave_multicast(id, &none.sa), -1, EINVAL);
	good &= ROW(rdma_leave_multicast(id, &local.sa), -1, EADDRNOTAVAIL);
	good &= ROW(rdma_join_multicast_ex(id, &join, NULL), -1, EINVAL);
	join.comp_mask = UINT32_MAX;
	good &= ROW(rdma_join_multicast_ex(id, &join, NULL), -1, ENOTSUP);
	join.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	good &= ROW(rdma_join_multicast_ex(id, &join, NULL), -1, EINVAL);
	join.addr = &local.sa;
	join.join_flags = UINT32_MAX;
	good &= ROW(rdma_join_multicast_ex(id, &join, NULL), -1, EINVAL);
	good &= ROW(rdma_set_option(id, -1, 0, &byte, 1), -1, ENOSYS);
	good &= ROW(rdma_set_option(id, RDMA_OPTION_ID, -1, &byte, 1), -1, ENOSYS);
	good &= ROW(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 0), -1, EINVAL);
	good &= ROW(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), -1, EFAULT);
	good &= ROW(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, SIZE_MAX), -1,
		    EINVAL);
	good &= ROW(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, NULL, 0), -1, EINVAL);
	good &= ROW(rdma_get_src_port(id), 0, 0);
	good &= ROW(rdma_get_dst_port(id), 0, 0);
	good &= RETURNS(rdma_destroy_qp(id)); /* qperf does so */
	good &= RETURNS(rdma_destroy_srq(id));
	return good;
}

static bool fresh(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	bool good;

	MUST(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	good = fresh_body(ch, id);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return good;
}

static bool without_a_channel(void)
{
	struct rdma_cm_id *id;
	bool good = true;

	MUST_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	good &= ROW(rdma_migrate_id(id, NULL), -1, EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	return good;
}

static bool backlogs(void)
{
	static const int absurd[] = { -1, 0, INT_MAX, INT_MIN };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address local = own(AF_INET, 0);
	struct rdma_cm_id *id;
	bool good = true;

	MUST(ch);
	for (int i = 0; i < 4; i++) {
		MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		MUST_EQ(rdma_bind_addr(id, &local.sa), 0);
		good &= ROW(rdma_listen(id, absurd[i]), 0, 0);
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	rdma_destroy_event_channel(ch);
	return good;
}

/* A negative time is no error: the kernel takes it for a long one. */
static bool timeouts(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	union address local = own(AF_INET, 7471);
	struct rdma_cm_id *id;
	bool good = true;

	MUST(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	good &= ROW(rdma_resolve_addr(id, NULL, &local.sa, -1), 0, 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
	good &= ROW(rdma_resolve_route(id, -1), 0, 0);
	MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	good &= ROW(rdma_resolve_route(id, 0), -1, EINVAL);
	good &= ROW(rdma_connect(id, NULL), -1, EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return good;
}

/* ---- connections ---- */

static bool ece_rows(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 0 };
	bool good = true;

	good &= ROW(rdma_set_local_ece(id, NULL), -1, EINVAL);
	good &= ROW(rdma_set_local_ece(id, &ece), -1, EINVAL);
	ece = (struct ibv_ece){ .vendor_id = 1, .comp_mask = 1 };
	good &= ROW(rdma_set_local_ece(id, &ece), -1, EINVAL);
	good &= ROW(rdma_get_remote_ece(id, NULL), -1, EINVAL);
	/* the mask before the call does not matter */
	good &= ROW(rdma_get_remote_ece(id, &ece), 0, 0);
	return good && !ece.vendor_id && !ece.options && !ece.comp_mask;
}

static bool queue_rows(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 0 } };
	struct ibv_srq_init_attr_ex srq_ex = { .comp_mask = 0 };
	struct ibv_qp_init_attr_ex ex = { .comp_mask = UINT32_MAX, .qp_type = IBV_QPT_RC };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC,
				       .cap = { UINT32_MAX, UINT32_MAX, 1, 1, 0 } };
	bool good = true;

	good &= ROW(rdma_create_qp(id, NULL, &qp), -1, EINVAL);
	qp.cap = (struct ibv_qp_cap){ 1, 1, UINT32_MAX, UINT32_MAX, 0 };
	good &= ROW(rdma_create_qp(id, NULL, &qp), -1, EINVAL);
	ex.pd = NULL;
	good &= ROW(rdma_create_qp_ex(id, &ex), -1, 0);
	good &= ROW(rdma_create_srq(id, NULL, &srq), -1, EINVAL);
	srq.attr = (struct ibv_srq_attr){ .max_wr = UINT32_MAX, .max_sge = UINT32_MAX };
	good &= ROW(rdma_create_srq(id, NULL, &srq), -1, EINVAL);
	good &= ROW(rdma_create_srq_ex(id, &srq_ex), -1, EINVAL);
	srq_ex.comp_mask = UINT32_MAX;
	srq_ex.srq_type = -1;
	good &= ROW(rdma_create_srq_ex(id, &srq_ex), -1, EINVAL);
	return good && !id->qp && !id->srq && !id->recv_cq && !id->send_cq;
}

/* Without a pointer the length of private data does not matter. */
static bool connecting(struct link *l, int family)
{
	struct rdma_conn_param param = { .private_data_len = UINT8_MAX };
	bool good = true;

	l->no_qp = true;
	MUST(link_open(l, family, RDMA_PS_TCP));
	good &= ece_rows(l->id[0]) & queue_rows(l->id[0]);
	param.responder_resources = RDMA_MAX_RESP_RES - 1;
	good &= ROW(rdma_connect(l->id[0], &param), -1, EINVAL);
	param.responder_resources = 0;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH - 1;
	good &= ROW(rdma_connect(l->id[0], &param), -1, EINVAL);
	l->no_qp = false;
	MUST_EQ(create_qp(l->id[0]), 0);
	good &= ROW(rdma_establish(l->id[0]), -1, EINVAL);
	good &= ROW(create_qp(l->id[0]), -1, EINVAL);
	good &= ROW(rdma_get_remote_ece(l->id[0], &(struct ibv_ece){ 0 }), -1, EINVAL);
	param = some_param(NULL, UINT8_MAX);
	MUST(link_request(l, &param));
	good &= ROW(rdma_notify(l->id[1], INT_MAX), -1, EINVAL);
	good &= ROW(rdma_accept(l->id[1], NULL), -1, EINVAL);
	MUST(link_accept(l, &param) && link_established(l));
	return good;
}
ON_LINK(connect_absurdly, connecting)

/* ---- rsockets ---- */

static bool not_an_rsocket(int fd)
{
	struct sockaddr_storage address = { 0 };
	struct iovec iov = { .iov_base = NULL };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	socklen_t len = sizeof(address);
	struct sockaddr *sa = (struct sockaddr *)&address;
	bool good = true;

	good &= ROW(rbind(fd, sa, len), -1, EBADF);
	good &= ROW(rlisten(fd, 1), -1, EBADF);
	good &= ROW(raccept(fd, sa, &len), -1, EBADF);
	good &= ROW(rconnect(fd, sa, len), -1, EBADF);
	good &= ROW(rshutdown(fd, SHUT_RDWR), -1, EBADF);
	good &= ROW(rclose(fd), -1, EBADF);
	good &= ROW(rgetpeername(fd, sa, &len), -1, EBADF);
	good &= ROW(rgetsockname(fd, sa, &len), -1, EBADF);
	good &= ROW(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &len, len), -1, EBADF);
	good &= ROW(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &address, &len), -1, EBADF);
	good &= ROW(rfcntl(fd, F_GETFL), -1, EBADF);
	good &= ROW(rsend(fd, NULL, 0, 0), -1, EBADF);
	good &= ROW(rsendto(fd, NULL, 0, 0, sa, len), -1, EBADF);
	good &= ROW(rsendmsg(fd, &msg, 0), -1, EBADF);
	good &= ROW(rwrite(fd, NULL, 0), -1, EBADF);
	good &= ROW(rwritev(fd, &iov, 1), -1, EBADF);
	good &= ROW(rrecv(fd, NULL, 0, 0), -1, EBADF);
	good &= ROW(rrecvfrom(fd, NULL, 0, 0, NULL, NULL), -1, EBADF);
	good &= ROW(rrecvmsg(fd, &msg, 0), -1, EBADF);
	good &= ROW(rread(fd, NULL, 0), -1, EBADF);
	good &= ROW(rreadv(fd, &iov, 1), -1, EBADF);
	good &= ROW(riomap(fd, NULL, 0, 0, 0, 0), -1, EBADF);
	good &= ROW(riounmap(fd, NULL, 0), -1, EBADF);
	good &= ROW(riowrite(fd, NULL, 0, 0, 0), -1, EBADF);
	return good;
}

static bool bad_descriptors(void)
{
	int fd = open("/dev/null", O_RDWR);
	bool good = not_an_rsocket(-1) & not_an_rsocket(INT_MIN) & not_an_rsocket(INT_MAX) &
		    not_an_rsocket(fd);

	close(fd);
	return good;
}

static bool bad_kinds(void)
{
	struct pollfd p[2] = { { .fd = -1, .events = POLLIN },
			       { .fd = INT_MIN, .events = POLLIN } };
	struct timeval now = { 0 };
	bool good = true;

	good &= ROW(rsocket(-1, SOCK_STREAM, 0), -1, ENOTSUP);
	good &= ROW(rsocket(AF_UNIX, SOCK_STREAM, 0), -1, ENOTSUP);
	good &= ROW(rsocket(AF_INET, -1, 0), -1, ENOTSUP);
	good &= ROW(rsocket(AF_INET, SOCK_STREAM, -1), -1, ENOTSUP);
	good &= ROW(rsocket(AF_INET, SOCK_DGRAM, IPPROTO_TCP), -1, ENOTSUP);
	good &= ROW(rpoll(NULL, 0, 0), 0, 0);
	good &= ROW(rpoll(p, 2, 0), 0, 0);
	good &= ROW(rselect(0, NULL, NULL, NULL, &now), 0, 0);
	good &= ROW(rselect(-1, NULL, NULL, NULL, &now), -1, 0);
	return good;
}

static bool fresh_rsocket(int type)
{
	union address none = of_family(0), absurd = of_family(99);
	const int fd = rsocket(AF_INET, type, 0);
	socklen_t len = 0;
	bool good = true;
	int number = 0;

	MUST(fd >= 0);
	good &= ROW(rbind(fd, NULL, 0), -1, 0);
	good &= ROW(rbind(fd, &absurd.sa, sizeof(absurd)), -1, 0);
	good &= ROW(rconnect(fd, NULL, 0), -1, 0);
	good &= ROW(rconnect(fd, &none.sa, 0), -1, 0);
	good &= ROW(rconnect(fd, &absurd.sa, UINT32_MAX), -1, 0);
	good &= ROW(raccept(fd, NULL, NULL), -1, 0);
	good &= ROW(rfcntl(fd, -1), -1, ENOTSUP);
	good &= ROW(rgetsockopt(fd, SOL_RDMA, -1, &number, &len), -1, 0);
	good &= ROW(rsetsockopt(fd, SOL_RDMA, -1, &number, sizeof(number)), -1, 0);
	good &= ROW(riomap(fd, NULL, 0, PROT_WRITE, 0, -1), -1, EINVAL);
	good &= ROW(riomap(fd, &number, SIZE_MAX, -1, -1, 0), -1, EINVAL);
	good &= ROW(riounmap(fd, NULL, SIZE_MAX), -1, EINVAL);
	MUST_EQ(rclose(fd), 0);
	return good;
}

/* ---- calls of rdma-core 60 and 65 ---- */

static bool newer_calls(void)
{
	struct rdma_addrinfo hints = { .ai_flags = -1 }, *info;
	struct epoll_event event = { .events = UINT32_MAX };
	struct rdma_cm_id *id;
	bool good = true;
	int set;

	MUST(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	good &= ROW(v_resolve_addrinfo(NULL, NULL, NULL, NULL), -1, EINVAL);
	good &= ROW(v_resolve_addrinfo(id, NULL, NULL, NULL), -1, EINVAL);
	good &= ROW(v_resolve_addrinfo(id, "", "", &hints), -1, EOPNOTSUPP);
	good &= ROW(v_query_addrinfo(NULL, &info), -1, EINVAL);
	good &= ROW(v_query_addrinfo(id, NULL), -1, EINVAL);
	good &= ROW(v_query_addrinfo(id, &info), -1, ENOENT);
	good &= ROW(v_write_cm_event(NULL, USER, 0, 0), -1, EINVAL);
	good &= ROW(v_write_cm_event(id, -1, INT_MIN, UINT64_MAX), -1, EINVAL);
	good &= ROW(v_write_cm_event(id, INT_MAX, INT_MIN, UINT64_MAX), -1, EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	good &= ROW(v_repoll_create(-1), -1, EINVAL);
	MUST((set = v_repoll_create(0)) >= 0);
	good &= ROW(v_repoll_ctl(set, INT_MIN, INT_MIN, NULL), -1, EINVAL);
	good &= ROW(v_repoll_ctl(set, EPOLL_CTL_ADD, INT_MAX, &event), -1, EBADF);
	good &= ROW(v_repoll_ctl(INT_MAX, EPOLL_CTL_ADD, 0, &event), -1, EBADF);
	good &= ROW(v_repoll_wait(set, NULL, INT_MIN, INT_MIN), -1, EINVAL);
	good &= ROW(v_repoll_wait(set, NULL, 1, INT_MAX), -1, EFAULT);
	good &= ROW(v_repoll_wait(INT_MIN, &event, 1, -1), -1, EBADF);
	good &= ROW(v_repoll_ctl(set, EPOLL_CTL_ADD, STDOUT_FILENO, &event), 0, 0);
	MUST_EQ(rclose(set), 0);
	return good;
}

static bool fresh_streams(void)
{
	return fresh_rsocket(SOCK_STREAM);
}

static bool fresh_datagrams(void)
{
	return fresh_rsocket(SOCK_DGRAM);
}

const struct test_case man_cases[] = {
	CASE(nothing),
	CASE(address_info),
	CASE(endpoints),
	CASE(fresh),
	CASE(without_a_channel),
	CASE(backlogs),
	CASE(timeouts),
	CASE(connect_absurdly_v4),
	CASE(connect_absurdly_v6),
	CASE(bad_descriptors),
	CASE(bad_kinds),
	CASE(newer_calls),
	CASE(fresh_streams),
	CASE(fresh_datagrams),
	{ 0 },
};
