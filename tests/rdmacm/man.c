/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One subject's cases on one device: man_SUBJECT IPV4 IPV6 [CASE...]. It links with librdmacm and
 * libibverbs and nothing of this project.
 */

#include "man.h"

static union address device_address[2];
char listen_context;

uint16_t port_of(const struct sockaddr *sa)
{
	return ntohs(sa->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port :
						 ((const struct sockaddr_in *)sa)->sin_port);
}

union address own(int family, uint16_t port)
{
	union address a = device_address[family == AF_INET6];

	if (family == AF_INET6)
		a.in6.sin6_port = htons(port);
	else
		a.in.sin_port = htons(port);
	return a;
}

const char *own_text(int family, char *host)
{
	union address at = own(family, 0);

	return inet_ntop(family, family == AF_INET6 ? (void *)&at.in6.sin6_addr : &at.in.sin_addr,
			 host, INET6_ADDRSTRLEN);
}

union address wild(int family, uint16_t port)
{
	union address a = { .sa.sa_family = (sa_family_t)family };

	if (family == AF_INET6)
		a.in6.sin6_port = htons(port);
	else
		a.in.sin_port = htons(port);
	return a;
}

union address other(int family, uint8_t last, uint16_t port)
{
	union address a = own(family, port);

	if (family == AF_INET6) {
		a.in6.sin6_addr.s6_addr[15] = last / 10 * 16 + last % 10; /* as it is read */
	} else {
		uint32_t ip = ntohl(a.in.sin_addr.s_addr);

		a.in.sin_addr.s_addr = htonl((ip & ~255u) | last);
	}
	return a;
}

bool same_host(const struct sockaddr *a, const union address *b)
{
	if (a->sa_family != b->sa.sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &b->in6.sin6_addr, 16);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr == b->in.sin_addr.s_addr;
}

struct rdma_cm_event *next_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *event;

	if (!readable(ch->fd, WAIT_MS)) {
		printf("# no event comes\n");
		return NULL;
	}
	if (rdma_get_cm_event(ch, &event)) {
		printf("# rdma_get_cm_event: errno %d\n", errno);
		return NULL;
	}
	return event;
}

static bool event_is(const struct rdma_cm_event *e, const struct rdma_cm_id *id,
		     enum rdma_cm_event_type type)
{
	if (e->event == type && e->id == id)
		return true;
	printf("# the event is %s (status %d)%s, not %s\n", rdma_event_str(e->event), e->status,
	       e->id == id ? "" : " of another id", rdma_event_str(type));
	return false;
}

bool take_status(struct rdma_event_channel *ch, const struct rdma_cm_id *id,
		 enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e = next_event(ch);
	bool good = e && event_is(e, id, type);

	if (good && e->status != status) {
		printf("# the status of %s is %d, not %d\n", rdma_event_str(type), e->status,
		       status);
		good = false;
	}
	return (!e || !rdma_ack_cm_event(e)) && good;
}

bool take(struct rdma_event_channel *ch, const struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	return take_status(ch, id, type, 0);
}

bool take_error(struct rdma_event_channel *ch, const struct rdma_cm_id *id,
		enum rdma_cm_event_type type, int *status)
{
	struct rdma_cm_event *e = next_event(ch);
	bool good = e && event_is(e, id, type);

	if (good && e->status >= 0) {
		printf("# the status of %s is %d\n", rdma_event_str(type), e->status);
		good = false;
	}
	if (good)
		*status = e->status;
	return (!e || !rdma_ack_cm_event(e)) && good;
}

bool no_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e;
	bool none;

	if (!set_nonblocking(ch->fd, true))
		return false;
	none = rdma_get_cm_event(ch, &e) == -1;
	if (none) {
		none = errno == EAGAIN;
	} else {
		printf("# there is an event: %s\n", rdma_event_str(e->event));
		rdma_ack_cm_event(e); /* or nothing could be destroyed */
	}
	return set_nonblocking(ch->fd, false) && none;
}

struct rdma_cm_id *listener(struct rdma_event_channel *ch, enum rdma_port_space ps,
			    union address at, int backlog)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, &listen_context, ps))
		return NULL;
	if (!rdma_bind_addr(id, &at.sa) && !rdma_listen(id, backlog))
		return id;
	printf("# no listener: errno %d\n", errno);
	rdma_destroy_id(id);
	return NULL;
}

uint32_t fresh_qpn(void)
{
	static uint32_t last = 0x1000;

	return ++last;
}

struct rdma_cm_id *resolving(struct rdma_event_channel *ch, int family)
{
	union address to = own(family, 7471);
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, ch, RDMA_PS_TCP))
		return NULL;
	return rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS) ? NULL : id;
}

struct rdma_cm_id *resolved(struct rdma_event_channel *ch, enum rdma_port_space ps,
			    union address to)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, NULL, ps))
		return NULL;
	if (!rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS) &&
	    take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED) && !rdma_resolve_route(id, WAIT_MS) &&
	    take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return id;
	printf("# not resolved: errno %d\n", errno);
	rdma_destroy_id(id);
	return NULL;
}

struct rdma_addrinfo *own_info(int family, uint16_t port, int flags, int ps, int type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST,
				       .ai_port_space = ps,
				       .ai_qp_type = type },
			     *res;
	char host[INET6_ADDRSTRLEN], service[8];

	snprintf(service, sizeof(service), "%u", port);
	return rdma_getaddrinfo(own_text(family, host), service, &hints, &res) ? NULL : res;
}

int create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = { .qp_type = id->qp_type, .cap = { QUEUE, QUEUE, 2, 2, 0 } };

	return rdma_create_qp(id, NULL, &a);
}

int qp_state_now(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	return ibv_query_qp(qp, &a, IBV_QP_STATE, &init) ? -1 : (int)a.qp_state;
}

struct rdma_conn_param some_param(const void *data, uint8_t len)
{
	return (struct rdma_conn_param){ .private_data = data,
					 .private_data_len = len,
					 .responder_resources = 3,
					 .initiator_depth = 5,
					 .flow_control = 1,
					 .retry_count = 6,
					 .rnr_retry_count = 4 };
}

bool link_open(struct link *l, int family, enum rdma_port_space ps)
{
	for (int i = 0; i < 2; i++)
		MUST(l->ch[i] = rdma_create_event_channel());
	MUST(l->listen = listener(l->ch[1], ps, own(family, 0), 8));
	MUST(l->id[0] = resolved(l->ch[0], ps, own(family, ntohs(rdma_get_src_port(l->listen)))));
	if (!l->no_qp)
		MUST_EQ(create_qp(l->id[0]), 0);
	return true;
}

bool link_request(struct link *l, struct rdma_conn_param *param)
{
	MUST_EQ(rdma_connect(l->id[0], param), 0);
	MUST(l->request = next_event(l->ch[1]));
	MUST_EQ(l->request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(l->request->listen_id == l->listen && l->request->id != l->listen);
	l->id[1] = l->request->id;
	return true;
}

bool link_accept(struct link *l, struct rdma_conn_param *param)
{
	if (!l->no_qp && !l->own_qp)
		MUST_EQ(create_qp(l->id[1]), 0);
	MUST_EQ(rdma_accept(l->id[1], param), 0);
	MUST_EQ(rdma_ack_cm_event(l->request), 0);
	l->request = NULL;
	return true;
}

bool link_established(struct link *l)
{
	MUST(take(l->ch[0], l->id[0], RDMA_CM_EVENT_ESTABLISHED));
	MUST(take(l->ch[1], l->id[1], RDMA_CM_EVENT_ESTABLISHED));
	return true;
}

bool link_up(struct link *l, int family)
{
	return link_open(l, family, RDMA_PS_TCP) && link_request(l, NULL) && link_accept(l, NULL) &&
	       link_established(l);
}

bool link_drop(struct link *l, int end)
{
	struct rdma_cm_id *id = l->id[end];

	l->id[end] = NULL;
	if (id && id->qp && !l->no_qp)
		rdma_destroy_qp(id);
	MUST(!id || !rdma_destroy_id(id));
	return true;
}

bool link_close(struct link *l)
{
	bool good = true;

	good &= !l->request || !rdma_ack_cm_event(l->request);
	for (int i = 0; i < 2; i++)
		good &= link_drop(l, i);
	good &= !l->listen || !rdma_destroy_id(l->listen);
	for (int i = 0; i < 2; i++)
		if (l->ch[i])
			rdma_destroy_event_channel(l->ch[i]);
	memset(l, 0, sizeof(*l));
	if (!good)
		printf("# something refused to be destroyed\n");
	return good;
}

int destroy_id(void *id)
{
	return rdma_destroy_id(id);
}

static bool run_named(const char *name)
{
	struct test_case one[2] = { { 0 } };

	for (const struct test_case *c = man_cases; c->name; c++)
		if (!strcmp(c->name, name))
			one[0] = *c;
	if (!one[0].name)
		printf("not ok %s: there is no such case\n", name);
	return one[0].name && run_all(one);
}

int main(int argc, char **argv)
{
	bool good = true;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3 || inet_pton(AF_INET, argv[1], &device_address[0].in.sin_addr) != 1 ||
	    inet_pton(AF_INET6, argv[2], &device_address[1].in6.sin6_addr) != 1) {
		fprintf(stderr, "usage: %s IPV4 IPV6 [CASE...]\n", argv[0]);
		return 2;
	}
	device_address[0].sa.sa_family = AF_INET;
	device_address[1].sa.sa_family = AF_INET6;
	if (argc == 3)
		return !run_all(man_cases);
	for (int i = 3; i < argc; i++)
		good &= run_named(argv[i]);
	return !good;
}
