/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exchanges MADs of the connection manager over QP 1, with others of its kind:
 *
 *	mads [-s SERVICE[@ADDRESS]]... [-c SERVICE@ADDRESS] [-n COUNT] [-i PAUSE-US] [-f] [-g FILE]
 *	     [-t TID] [-x] [-y PLACE:TID@ADDRESS] [-w] DEVICE GID-INDEX
 *
 *   -s	bind the service, at the address or at any, and answer each REQ for it by a REP. A
 *	service that cannot be bound is reported and skipped
 *   -c	send COUNT REQs for the service there, each again until its REP arrives
 *   -i	sleep that time before each REQ but the first
 *   -f	fork first: nothing of it is the child's
 *   -g	begin to ask when FILE is there
 *   -t	use TID for the first REQ
 *   -y	send COUNT times every answer to the first REQ, with that TID, of the process of that place
 *	at ADDRESS. That process dies if one arrives
 *   -x	before that send the same address packets that a broker's client may not send from QP 1:
 *	a process that receives one dies
 *   -w	then go on serving until TERM
 *
 * SIGUSR1: prints a line with the number of MADs exchanged.
 *
 * Each received MAD is judged: its length, its GRH, its sender, and that it is for this process: a
 * REQ for one of its services, a REP to one of its ids. It sleeps on a completion channel.
 */
#define _GNU_SOURCE /* strerrorname_np() */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xroce/abi.h>

#include "../../user/cm/mad.h"
#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/qp1.h"

#define GRH	     40
#define SLOTS	     64 /* receives, and as many sends */
#define SERVICES_MAX 2048
#define REPEAT_MS    100

struct slot {
	uint8_t grh[GRH];
	uint8_t mad[CM_MAD_BYTES];
};

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct slot slot[2 * SLOTS]; /* received into, sent from */
	struct ibv_ah *ah[SLOTS];    /* of an answer; gone when its send completes */
	bool busy[SLOTS];
	union ibv_gid gid;
	uint32_t gid_index, first_id, num_ids;
} own;

static struct qp1_calls calls;
static struct xroce_cm_service service[SERVICES_MAX];
static unsigned int num_services;

/* Of -c. */
static struct {
	struct ibv_ah *ah;
	union ibv_gid gid;
	uint64_t service, tid; /* of the first; no other process's are near it */
	uint32_t count, done, repeated;
	uint64_t sent_ms;
	useconds_t pause_us;
} asking = { .count = 1 };
static uint64_t served;

static volatile sig_atomic_t stop, tell;

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		stop = 1;
	else
		tell = 1;
}

/* ---- the QP ---- */

static void post_receive(unsigned int i)
{
	struct ibv_sge sge = { (uintptr_t)&own.slot[i], sizeof(own.slot[i]), own.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(own.qp, &wr, &bad), "ibv_post_recv");
}

static void make(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .cap = { SLOTS, SLOTS, 1, 1, 0 } };

	own.ctx = open_device(device);
	must(!ibv_query_gid(own.ctx, 1, (int)own.gid_index, &own.gid), "no such GID");
	must(calls.ifindex(own.ctx->device) > 0, "the device has no interface");
	must((own.pd = ibv_alloc_pd(own.ctx)), "ibv_alloc_pd");
	must((own.mr = ibv_reg_mr(own.pd, own.slot, sizeof(own.slot), IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	must((own.channel = ibv_create_comp_channel(own.ctx)), "ibv_create_comp_channel");
	must((own.cq = ibv_create_cq(own.ctx, 2 * SLOTS, NULL, own.channel, 0)), "ibv_create_cq");
	init.send_cq = init.recv_cq = own.cq;
	must((own.qp = calls.create(own.pd, &init)), "QP 1: %s", strerror(errno));
	must(own.qp->qp_num == 1, "QP 1 has number %u", own.qp->qp_num);
	must(!calls.create(own.pd, &init) && errno == EBUSY, "a second QP 1: %s", strerror(errno));
	errno = calls.place(own.ctx, &own.first_id, &own.num_ids);
	must(!errno, "the communication ids: %s", strerror(errno));
	must(own.num_ids == 1u << 21 && own.first_id && !(own.first_id % own.num_ids),
	     "%u ids from %#x on", own.num_ids, own.first_id);
	printf("place %#x\n", own.first_id / own.num_ids);
	must(!ibv_req_notify_cq(own.cq, 0), "ibv_req_notify_cq");
	qp1_to_rts(own.qp);
	for (unsigned int i = 0; i < SLOTS; i++)
		post_receive(i);
}

/* False: all slots are busy, as if it had been lost. */
static bool send_mad(const struct cm_mad *m, struct ibv_ah *ah, bool is_answer)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
				  .num_sge = 1, .wr.ud = { ah, 1, XROCE_CM_QKEY } }, *bad;
	struct ibv_sge sge = { .length = CM_MAD_BYTES, .lkey = own.mr->lkey };
	unsigned int i;

	for (i = 0; i < SLOTS && own.busy[i]; i++)
		;
	if (i == SLOTS)
		return false;
	own.busy[i] = true;
	own.ah[i] = is_answer ? ah : NULL;
	cm_mad_encode(own.slot[SLOTS + i].mad, m);
	wr.wr_id = SLOTS + i;
	sge.addr = (uintptr_t)own.slot[SLOTS + i].mad;
	wr.sg_list = &sge;
	must(!ibv_post_send(own.qp, &wr, &bad), "ibv_post_send");
	return true;
}

static void address(const char *text, union ibv_gid *gid)
{
	*gid = (union ibv_gid){ 0 };
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return;
	must(inet_pton(AF_INET, text, gid->raw + 12) == 1, "no address: %s", text);
	gid->raw[10] = gid->raw[11] = 0xff;
}

static void make_ah(const char *to)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh = { .sgid_index = (uint8_t)own.gid_index,
					     .hop_limit = 64 } };

	address(to, &asking.gid);
	attr.grh.dgid = asking.gid;
	must((asking.ah = ibv_create_ah(own.pd, &attr)), "ibv_create_ah: %s", strerror(errno));
}

/* ---- forbidden packets ---- */

#define FOREIGN_SERVICE 0x0106fffe /* not bound */

static const struct forbidden {
	const char *what;
	uint32_t bytes, remote_qpn;
	unsigned int at; /* where the MAD is changed */
	uint8_t to;
	uint32_t id;     /* added to the first id of our range */
} forbidden[] = {
	{ "a REQ with an id before the own ones", CM_MAD_BYTES, 1, 0, 1, -1u },
	{ "a REQ with an id behind the own ones", CM_MAD_BYTES, 1, 0, 1, 1u << 21 },
	{ "another base version", CM_MAD_BYTES, 1, 0, 2, 0 },
	{ "another class", CM_MAD_BYTES, 1, 1, 3, 0 },
	{ "another class version", CM_MAD_BYTES, 1, 2, 1, 0 },
	{ "another method", CM_MAD_BYTES, 1, 3, 1, 0 },
	{ "no attribute of the class", CM_MAD_BYTES, 1, 17, 0x1b, 0 },
	{ "a short MAD", CM_MAD_BYTES - 4, 1, 0, 1, 0 },
	{ "a MAD that is padded", CM_MAD_BYTES - 1, 1, 0, 1, 0 },
	{ "nothing", 0, 1, 0, 1, 0 },
	{ "a MAD to QP 0", CM_MAD_BYTES, 0, 0, 1, 0 },
	{ "a MAD to another QP", CM_MAD_BYTES, 0x123456, 0, 1, 0 },
};

#define FORGED 0xee /* each byte of the private data of an answer to another process's request */

static void await_sent(void)
{
	struct ibv_wc wc;
	int n;

	do
		must((n = ibv_poll_cq(own.cq, 1, &wc)) >= 0, "ibv_poll_cq: %d", n);
	while (!n);
	must(wc.wr_id == SLOTS && wc.status == IBV_WC_SUCCESS, "a send ends with %s",
	     ibv_wc_status_str(wc.status));
}

static void send_forbidden(const struct forbidden *f)
{
	const struct cm_mad m = { .kind = CM_REQ, .local_id = own.first_id + f->id,
				  .req = { .service_id = FOREIGN_SERVICE, .mtu = 3 } };
	struct slot *s = &own.slot[SLOTS];
	struct ibv_sge sge = { (uintptr_t)s->mad, f->bytes, own.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = SLOTS, .opcode = IBV_WR_SEND, .sg_list = &sge,
				  .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { asking.ah, f->remote_qpn, XROCE_CM_QKEY } }, *bad;

	cm_mad_encode(s->mad, &m);
	s->mad[f->at] = f->to;
	must(!ibv_post_send(own.qp, &wr, &bad), "ibv_post_send");
	await_sent();
}

static void send_all_forbidden(void)
{
	for (unsigned int i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++)
		send_forbidden(&forbidden[i]);
	printf("forbidden %zu\n", sizeof(forbidden) / sizeof(forbidden[0]));
}

/* ---- messages ---- */

static void send_req(void)
{
	struct cm_mad m = { .kind = CM_REQ,
			    .tid = asking.tid + asking.done,
			    .local_id = own.first_id + asking.done % own.num_ids,
			    .req = { .service_id = asking.service, .qpn = 77, .pkey = 0xffff,
				     .mtu = 3, .max_retries = 15 } };

	memcpy(m.req.primary.local.raw, own.gid.raw, 16);
	memcpy(m.req.primary.remote.raw, asking.gid.raw, 16);
	for (unsigned int i = 0; i < 92; i++)
		m.data[i] = (uint8_t)(i + asking.done);
	send_mad(&m, asking.ah, false);
	asking.sent_ms = now_ms();
}

/* A GRH as it came: IPv6, or an IPv4 header in its last 20 bytes. */
static void judge_grh(const uint8_t *grh, union ibv_gid *from)
{
	union ibv_gid to = { 0 };

	*from = to;
	if (grh[0] >> 4 == 6) {
		memcpy(from->raw, grh + 8, 16);
		memcpy(to.raw, grh + 24, 16);
	} else {
		must(grh[20] == 0x45, "no IP header in the GRH");
		from->raw[10] = from->raw[11] = to.raw[10] = to.raw[11] = 0xff;
		memcpy(from->raw + 12, grh + 32, 4);
		memcpy(to.raw + 12, grh + 36, 4);
	}
	must(!memcmp(to.raw, own.gid.raw, 16), "to another address");
}

static bool is_served(uint64_t id, const union ibv_gid *at)
{
	static const union ibv_gid any;

	for (unsigned int i = 0; i < num_services; i++)
		if (service[i].id == id && (!memcmp(service[i].address.raw, any.raw, 16) ||
					    !memcmp(service[i].address.raw, at->raw, 16)))
			return true;
	return false;
}

static void take_req(const struct cm_mad *m, struct ibv_wc *wc, struct slot *s)
{
	struct cm_mad rep = { .kind = CM_REP,
			      .tid = m->tid,
			      .local_id = own.first_id + (uint32_t)served % own.num_ids,
			      .remote_id = m->local_id,
			      .rep = { .qpn = 78 } };
	struct ibv_ah *ah = ibv_create_ah_from_wc(own.pd, wc, (struct ibv_grh *)s->grh, 1);

	must(is_served(m->req.service_id, &own.gid), "a REQ for another's service, %#llx",
	     (unsigned long long)m->req.service_id);
	must(ah, "ibv_create_ah_from_wc: %s", strerror(errno));
	memcpy(rep.data, m->data, 92);
	if (!send_mad(&rep, ah, true))
		ibv_destroy_ah(ah);
	served++;
}

static bool is_own_id(uint32_t id)
{
	return id - own.first_id < own.num_ids;
}

/* A duplicate, or an answer to a resent REQ, is not one to the next REQ. */
static void take_rep(const struct cm_mad *m, const union ibv_gid *from)
{
	must(is_own_id(m->remote_id), "a REP to another's id, %#x", m->remote_id);
	if (!asking.ah || asking.done == asking.count ||
	    m->remote_id != own.first_id + asking.done % own.num_ids)
		return;
	must(!memcmp(from->raw, asking.gid.raw, 16), "a REP of another address");
	must(m->tid == asking.tid + asking.done, "a REP of another transaction");
	for (unsigned int i = 0; i < 92; i++)
		must(m->data[i] == (uint8_t)(i + asking.done), "byte %u of the data", i);
	if (++asking.done == asking.count)
		return;
	if (asking.pause_us)
		usleep(asking.pause_us);
	send_req();
}

/*
 * No process here disconnects. But the broker sends a DREQ to the peers of a process that has
 * ended. If that peer has ended too, the DREQ reaches a process that has a QP 1, or the broker if
 * none has; so does the broker's DREP if a process makes a QP 1 in that time. Both are to any
 * address.
 */
static void take_mad(struct ibv_wc *wc, struct slot *s)
{
	union ibv_gid from;
	struct cm_mad m;

	must(wc->byte_len == sizeof(*s) && wc->wc_flags & IBV_WC_GRH, "%u bytes", wc->byte_len);
	must(wc->src_qp == 1 && wc->qp_num == 1 && !wc->pkey_index, "from QP %u", wc->src_qp);
	must(cm_mad_decode(&m, s->mad, CM_MAD_BYTES) == CM_DROP_none, "not a MAD");
	must(m.data[0] != FORGED || m.data[1] != FORGED, "a forged MAD of kind %#x",
	     (unsigned int)m.kind);
	if (m.kind == CM_DREQ || m.kind == CM_REJ || (m.kind == CM_DREP && !is_own_id(m.remote_id)))
		return;
	judge_grh(s->grh, &from);
	if (m.kind == CM_REQ)
		take_req(&m, wc, s);
	else if (m.kind == CM_REP)
		take_rep(&m, &from);
	else
		die("a MAD of kind %#x", (unsigned int)m.kind);
}

static void take_completions(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = ibv_poll_cq(own.cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++) {
			const unsigned int at = (unsigned int)wc[i].wr_id;

			must(wc[i].status == IBV_WC_SUCCESS, "a work request ends with %s",
			     ibv_wc_status_str(wc[i].status));
			if (at < SLOTS) {
				take_mad(&wc[i], &own.slot[at]);
				post_receive(at);
				continue;
			}
			if (own.ah[at - SLOTS])
				ibv_destroy_ah(own.ah[at - SLOTS]);
			own.busy[at - SLOTS] = false;
		}
	must(n == 0, "ibv_poll_cq: %d", n);
}

static void wait_for_event(void)
{
	struct pollfd p = { .fd = own.channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, REPEAT_MS) <= 0)
		return;
	if (ibv_get_cq_event(own.channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	must(!ibv_req_notify_cq(own.cq, 0), "ibv_req_notify_cq");
}

/* ---- answers to the requests of others ---- */

#define EMPTY_PLACE (XROCE_CM_PLACE_MAX - 1)

/* Sends an answer to the REQ or SIDR_REQ `id` of the process at asking.ah, until it has left. */
static void send_forged(enum cm_kind kind, uint32_t own_id, uint32_t id)
{
	struct cm_mad m = { .kind = kind, .tid = asking.tid, .local_id = own_id, .remote_id = id };

	if (kind == CM_SIDR_REP)
		m.local_id = id;
	else if (kind == CM_REP)
		m.rep.qpn = 666;
	else if (kind == CM_REJ)
		m.rej.reason = CM_REJ_CONSUMER_DEFINED;
	memset(m.data, FORGED, cm_data_room(kind));
	must(send_mad(&m, asking.ah, false), "no room to send");
	while (own.busy[0])
		take_completions();
}

static void forge(const char *text)
{
	const uint32_t nobodys = EMPTY_PLACE << XROCE_CM_ID_BITS;
	char *end;
	const uint32_t id = (uint32_t)strtoul(text, &end, 0) << XROCE_CM_ID_BITS;

	must(*end == ':', "no place: %s", text);
	asking.tid = strtoull(end + 1, &end, 0);
	must(*end == '@', "no address: %s", text);
	make_ah(end + 1);
	for (uint32_t i = 0; i < asking.count; i++) {
		send_forged(CM_REP, own.first_id, id);
		send_forged(CM_MRA, own.first_id, id);
		send_forged(CM_SIDR_REP, 0, id);
		send_forged(CM_REJ, own.first_id, id);
		send_forged(CM_REJ, 0, id);
		send_forged(CM_REJ, nobodys, id);
		send_forged(CM_DREP, nobodys, id);
		send_forged(CM_APR, nobodys, id);
		usleep(asking.pause_us);
	}
	printf("forged %u\n", asking.count);
}

/* ---- the command line ---- */

static void parse_service(const char *text)
{
	const char *at = strchr(text, '@');
	struct xroce_cm_service *s = &service[num_services];

	must(num_services < SERVICES_MAX, "too many services");
	*s = (struct xroce_cm_service){ .id = strtoull(text, NULL, 0) };
	if (at)
		address(at + 1, &s->address);
	else
		s->families = XROCE_CM_IPV4 | XROCE_CM_IPV6;
	num_services++;
}

static void bind_services(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < num_services; i++) {
		const int err = calls.bind(own.ctx, &service[i]);

		printf("service %#llx: %s\n", (unsigned long long)service[i].id,
		       err ? strerrorname_np(err) : "bound");
		if (!err)
			service[n++] = service[i];
	}
	num_services = n;
	printf("ready\n");
	fflush(stdout);
}

static void unbind_services(void)
{
	for (unsigned int i = 0; i < num_services; i++)
		must(!calls.unbind(own.ctx, &service[i]), "unbind");
	for (unsigned int i = 0; i < num_services; i++)
		must(calls.unbind(own.ctx, &service[i]) == ENOENT, "unbind again");
}

static void fork_in_vain(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = own.cq,
					 .recv_cq = own.cq, .cap = { 1, 1, 1, 1, 0 } };
	const struct xroce_cm_service s = { .id = 0x0106fffd, .families = XROCE_CM_IPV4 };
	const pid_t pid = fork();
	uint32_t first, num;
	int status;

	must(pid >= 0, "fork");
	if (!pid)
		_exit(calls.place(own.ctx, &first, &num) != EIO ||
		      calls.bind(own.ctx, &s) != EIO || calls.unbind(own.ctx, &s) != EIO ||
		      calls.create(own.pd, &init) || errno != EIO);
	must(waitpid(pid, &status, 0) == pid && !status, "the child has a part in it");
}

static void begin_to_ask(const char *text, bool hostile)
{
	const char *at = strchr(text, '@');

	must(at, "no address: %s", text);
	asking.service = strtoull(text, NULL, 0);
	if (!asking.tid)
		must(getrandom(&asking.tid, sizeof(asking.tid), 0) == sizeof(asking.tid),
		     "getrandom");
	make_ah(at + 1);
	if (hostile)
		send_all_forbidden();
	send_req();
}

static void say_where(void)
{
	tell = 0;
	printf("at %llu\n", (unsigned long long)(asking.done + served));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	const char *ask = NULL;
	const char *go = NULL;
	const char *forged = NULL;
	bool stays = false, hostile = false, begun = false, forks = false;
	uint64_t end;
	int c;

	while ((c = getopt(argc, argv, "s:c:n:i:g:t:y:fxw")) != -1)
		switch (c) {
		case 's': parse_service(optarg); break;
		case 'c': ask = optarg; break;
		case 'n': asking.count = (uint32_t)atoi(optarg); break;
		case 'i': asking.pause_us = (useconds_t)atoi(optarg); break;
		case 'f': forks = true; break;
		case 'g': go = optarg; break;
		case 't': asking.tid = strtoull(optarg, NULL, 0); break;
		case 'x': hostile = true; break;
		case 'y': forged = optarg; break;
		case 'w': stays = true; break;
		default: return 2;
		}
	must(argc == optind + 2, "mads [-s SERVICE[@ADDRESS]]... [-c SERVICE@ADDRESS] [-n COUNT] "
				 "[-i PAUSE-US] [-f] [-g FILE] [-t TID] [-x] "
				 "[-y PLACE:TID@ADDRESS] [-w] DEVICE GID-INDEX");
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	own.gid_index = (uint32_t)atoi(argv[optind + 1]);
	calls = qp1_calls();
	make(argv[optind]);
	bind_services();
	if (forks)
		fork_in_vain();
	if (forged)
		forge(forged);
	end = now_ms() + 3 * WAIT_MS;
	while (!stop && (stays || (ask && asking.done < asking.count))) {
		take_completions();
		if (tell)
			say_where();
		if (ask && !begun && (!go || !access(go, F_OK))) {
			begun = true;
			begin_to_ask(ask, hostile);
		}
		if (begun && asking.done < asking.count && now_ms() - asking.sent_ms >= REPEAT_MS) {
			must(now_ms() < end, "no answer to REQ %u", asking.done);
			asking.repeated++;
			send_req();
		}
		wait_for_event();
	}
	printf("asked %u, repeated %u, served %llu\n", asking.done, asking.repeated,
	       (unsigned long long)served);
	unbind_services();
	must(!ibv_destroy_qp(own.qp), "ibv_destroy_qp");
	if (asking.ah)
		must(!ibv_destroy_ah(asking.ah), "ibv_destroy_ah");
	/* of the answers whose completions have not been taken */
	for (unsigned int i = 0; i < SLOTS; i++)
		must(!own.busy[i] || !own.ah[i] || !ibv_destroy_ah(own.ah[i]), "ibv_destroy_ah");
	must(!ibv_destroy_cq(own.cq) &&
		     !ibv_destroy_comp_channel(own.channel) && !ibv_dereg_mr(own.mr) &&
		     !ibv_dealloc_pd(own.pd) && !ibv_close_device(own.ctx),
	     "the end");
	return 0;
}
