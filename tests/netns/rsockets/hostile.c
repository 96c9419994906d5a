/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A peer that is no rsocket: rdma_cm's calls alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <unistd.h>

#include "../lib/ctl.h"
#include "rsockets.h"

struct hostile {
	struct rdma_cm_id *id;
	uint64_t list, buffer;
	uint32_t list_key, buffer_key;
	struct ibv_mr *mr;
	bool connected, silent; /* silent: posts no receives */
	uint8_t memory[4096];
};

static uint64_t big_endian(const uint8_t *at_byte, int n)
{
	uint64_t value = 0;

	while (n--)
		value = value << 8 | *at_byte++;
	return value;
}

/* Connects with these private data. */
static bool hostile_connect(struct hostile *h, const uint8_t *data, uint8_t n)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct rdma_conn_param param = {
		.private_data_len = n,
		.retry_count = 6,
		/* of the other side; 7: without end */
		.rnr_retry_count = h->silent ? 7 : 6,
	};
	struct ibv_recv_wr wr = { 0 }, *bad;
	uint64_t list = htobe64((uintptr_t)h->memory);
	uint8_t own[40];
	const uint8_t *told;

	CHECK(!rdma_create_id(NULL, &h->id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(h->id, NULL, &at.any, 2000));
	CHECK(!rdma_resolve_route(h->id, 2000));
	CHECK(!rdma_create_qp(h->id, NULL, &attr));
	h->mr = ibv_reg_mr(h->id->pd, h->memory, sizeof(h->memory),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(h->mr);
	/* Its list and its buffer are there, and may be written. */
	memcpy(own, data, n);
	memcpy(own + 8, &list, sizeof(list));
	memcpy(own + 16, &(uint32_t){ htobe32(h->mr->rkey) }, 4);
	memcpy(own + 24, &list, sizeof(list));
	memcpy(own + 32, &(uint32_t){ htobe32(h->mr->rkey) }, 4);
	param.private_data = own;
	for (int i = 0; i < 32 && !h->silent; i++)
		CHECK(!ibv_post_recv(h->id->qp, &wr, &bad));
	if (rdma_connect(h->id, &param))
		return false;
	h->connected = true;
	told = h->id->event->param.conn.private_data;
	h->list = big_endian(told + 8, 8);
	h->list_key = (uint32_t)big_endian(told + 16, 4);
	h->buffer = big_endian(told + 24, 8);
	h->buffer_key = (uint32_t)big_endian(told + 32, 4);
	return true;
}

static void hostile_end(struct hostile *h)
{
	if (!h->id)
		return;
	if (h->connected)
		rdma_disconnect(h->id);
	if (h->id->qp)
		rdma_destroy_qp(h->id);
	if (h->mr)
		ibv_dereg_mr(h->mr);
	rdma_destroy_id(h->id);
}

/* What an honest one would tell of its memory. */
static void hostile_data(const struct hostile *h, uint8_t data[40])
{
	memset(data, 0, 40);
	data[0] = 1;
	data[3] = 16;
	data[23] = 2;
	data[38] = 4;
}

static bool hostile_say(struct hostile *h, uint32_t message, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)h->memory, bytes, h->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(message),
		.wr.rdma = { h->buffer, h->buffer_key },
	}, *bad;

	CHECK(!ibv_post_send(h->id->qp, &wr, &bad));
	return true;
}

static bool hostile_message(uint32_t message, uint32_t bytes, ssize_t want)
{
	struct hostile h = { 0 };
	uint8_t data[40];
	char byte[4];
	bool ok;
	ssize_t got = 0;

	CHECK(pair_listen(5));
	hostile_data(&h, data);
	ok = hostile_connect(&h, data, sizeof(data));
	if (ok) {
		pair.server = raccept(pair.listener, NULL, NULL);
		ok = pair.server >= 0 && hostile_say(&h, message, bytes);
		errno = 0;
		got = rrecv(pair.server, byte, sizeof(byte), 0);
	}
	if (!ok || got != want || (want < 0 && errno != ECONNRESET))
		printf("# message %x: %zd, errno %d\n", message, got, errno);
	else
		printf("# message %x: as it should be\n", message);
	ok = ok && got == want && (want >= 0 || errno == ECONNRESET);
	hostile_end(&h);
	pair_close();
	return ok;
}

bool hostile_messages(void)
{
	CHECK(hostile_message(2, 2, 2)); /* an honest one is read */
	CHECK(hostile_message(0x1fffffff, 1, -1));
	CHECK(hostile_message(65537, 0, -1));
	CHECK(hostile_message(0x20000001, 0, -1));
	CHECK(hostile_message(0x40000001, 0, -1));
	CHECK(hostile_message(0xa0000001, 0, -1));
	CHECK(hostile_message(0xc0000000, 0, -1));
	CHECK(hostile_message(0xc000ffff, 0, -1));
	CHECK(hostile_message(0xe0000000, 0, 0));
	CHECK(hostile_message(0xe0000002, 0, 0));
	return true;
}

/* A call that returns bytes leaves the error of the connection to the next call. */
bool hostile_after_data(void)
{
	struct hostile h = { 0 };
	uint8_t data[40];
	char bytes[4];
	bool ok;

	CHECK(pair_listen(5));
	hostile_data(&h, data);
	ok = hostile_connect(&h, data, sizeof(data));
	pair.server = ok ? raccept(pair.listener, NULL, NULL) : -1;
	ok = pair.server >= 0 && hostile_say(&h, 2, 2) && hostile_say(&h, 0xc0000000, 0);
	ok = ok && rrecv(pair.server, bytes, sizeof(bytes), MSG_WAITALL) == 2;
	ok = ok && rrecv(pair.server, bytes, 1, 0) == -1 && errno == ECONNRESET;
	ok = ok && rrecv(pair.server, bytes, 1, 0) == 0;
	hostile_end(&h);
	CHECK(ok);
	return true;
}

bool hostile_private_data(void)
{
	struct hostile h;
	uint8_t data[40];
	static const struct {
		uint8_t n, at, value;
	} cases[] = { { 40, 0, 2 }, { 40, 0, 0 }, { 40, 23, 0 } };

	CHECK(pair_listen(5));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(&h, 0, sizeof(h));
		hostile_data(&h, data);
		data[cases[i].at] = cases[i].value;
		CHECK(!hostile_connect(&h, data, cases[i].n));
		hostile_end(&h);
	}
	/* and the listener still answers others */
	CHECK(pair_connect());
	return true;
}

/* ---- peers that do nothing ---- */

enum { AT_ONCE_MS = 1000 };

static bool hostile_silent(struct hostile *h)
{
	uint8_t data[40];

	*h = (struct hostile){ .silent = true };
	hostile_data(h, data);
	return hostile_connect(h, data, sizeof(data));
}

/* Sends a byte to a peer without receives, and ends the connection: a single thread goes on. */
static bool ends_at_once(int how)
{
	const struct timeval time = { .tv_sec = 1 };
	const uint64_t begun_ms = now_ms();
	char byte;
	int fd;

	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(pair.server >= 0 && rsend(pair.server, "x", 1, 0) == 1);
	if (how >= 0)
		CHECK(!rshutdown(pair.server, how));
	fd = pair.server;
	pair.server = -1;
	CHECK(!rclose(fd));
	CHECK(now_ms() - begun_ms < AT_ONCE_MS);
	CHECK(pair_connect());
	CHECK(!rsetsockopt(pair.client, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	CHECK(rsend(pair.server, "y", 1, 0) == 1);
	CHECK(rrecv(pair.client, &byte, 1, 0) == 1 && byte == 'y');
	CHECK(!rclose(pair.server) && !rclose(pair.client));
	pair.server = pair.client = -1;
	return true;
}

bool hostile_without_receives(void)
{
	static const int how[] = { -1, SHUT_WR, SHUT_RDWR };
	struct hostile h[3] = { 0 };
	bool ok;

	ok = pair_listen(5);
	for (size_t i = 0; ok && i < 3; i++)
		ok = hostile_silent(&h[i]) && ends_at_once(how[i]);
	for (size_t i = 0; i < 3; i++)
		hostile_end(&h[i]);
	return ok;
}

/* Of SO_LINGER: as long as it says, and zero does not wait. */
bool hostile_lingers(void)
{
	struct linger linger = { .l_onoff = 1 };
	struct hostile h[2] = { 0 };
	uint64_t begun_ms, took_ms;
	bool ok = pair_listen(5);

	for (int i = 0; ok && i < 2; i++) {
		linger.l_linger = i;
		ok = hostile_silent(&h[i]);
		pair.server = ok ? raccept(pair.listener, NULL, NULL) : -1;
		ok = ok && rsend(pair.server, "x", 1, 0) == 1;
		ok = ok && !rsetsockopt(pair.server, SOL_SOCKET, SO_LINGER, &linger,
					sizeof(linger));
		begun_ms = now_ms();
		ok = ok && !rclose(pair.server);
		pair.server = -1;
		took_ms = now_ms() - begun_ms;
		printf("# with %d s: %llu ms\n", i, (unsigned long long)took_ms);
		ok = ok && (i ? took_ms >= 900 : took_ms < AT_ONCE_MS);
	}
	for (int i = 0; i < 2; i++)
		hostile_end(&h[i]);
	CHECK(ok);
	return true;
}

/* An honest peer that makes no call: its receives are used up, and it reads everything later. */
bool idle_peer(void)
{
	int receives = 16;
	uint64_t begun_ms;
	char bytes[32];

	CHECK(pair_listen(5));
	pair.client = rsocket(at.any.sa_family, SOCK_STREAM, 0);
	CHECK(!rsetsockopt(pair.client, SOL_RDMA, RDMA_RQSIZE, &receives, sizeof(receives)));
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	pair.server = raccept(pair.listener, NULL, NULL);
	CHECK(pair.server >= 0 && !rfcntl(pair.server, F_SETFL, O_NONBLOCK));
	for (int i = 0; i < receives; i++)
		CHECK(rsend(pair.server, "x", 1, 0) == 1);
	CHECK_ERRNO(rsend(pair.server, "x", 1, 0), EAGAIN);
	begun_ms = now_ms();
	CHECK(!rshutdown(pair.server, SHUT_WR) && !rclose(pair.server));
	pair.server = -1;
	CHECK(now_ms() - begun_ms < AT_ONCE_MS);
	rpoll(NULL, 0, 300);
	CHECK(rrecv(pair.client, bytes, sizeof(bytes), MSG_WAITALL) == receives);
	CHECK(rrecv(pair.client, bytes, 1, 0) == 0);
	return true;
}

int hostile_wait(int port)
{
	struct hostile h;

	at.v4.sin_port = htons((uint16_t)port);
	if (!hostile_silent(&h))
		return 1;
	printf("connected\n");
	fflush(stdout);
	pause();
	return 0;
}
