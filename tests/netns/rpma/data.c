/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program on librpma that knows each byte: remote writes that are flushed, read back and found in
 * the server's memory, atomic writes, messages both ways, immediate data, a shared receive queue.
 * rpma.sh compiles it; nothing in it is ours.
 *
 *   data serve ADDRESS PORT CONNECTIONS [srq]	ends after these
 *   data ask ADDRESS PORT ROUNDS		disconnects
 *   data leave ADDRESS PORT			connects, says "connected", and waits to be killed
 *
 * The server's private data describes its memory; the last message of a client is the number of its
 * rounds, and the server checks all of its memory before it answers.
 */
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t sizes[] = { 1, 8, 63, 4096, 4097, 65536, 200001, 1048576 };
#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define PLACE	1048576 /* each size has its own place in the server's memory */
#define MEMORY	((SIZES + 1) * PLACE)
#define MESSAGE 64
#define AHEAD	64 /* writes that are under way at once */

#define must(call)                                                                                 \
	do {                                                                                       \
		int must_ret = (call);                                                             \
		if (must_ret)                                                                      \
			die(#call, must_ret);                                                      \
	} while (0)

static void die(const char *what, int ret)
{
	printf("%s: %s\n", what, ret < 0 ? rpma_err_2str(ret) : "wrong");
	fflush(stdout);
	exit(1);
}

static uint8_t data_byte(int round, size_t place, size_t at)
{
	return (uint8_t)((at * 0x9e3779b97f4a7c15ull >> 23) + place * 31 + (size_t)round * 7);
}

static struct rpma_peer *peer_at(const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *ctx;
	struct rpma_peer *peer;

	must(rpma_utils_get_ibv_context(address, type, &ctx));
	must(rpma_peer_new(ctx, &peer));
	return peer;
}

/* memory that begins at a page */
static uint8_t *memory(size_t n)
{
	void *p = NULL;

	must(posix_memalign(&p, 4096, n));
	memset(p, 0, n);
	return p;
}

static void want_event(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(conn, &event));
	if (event != want) {
		printf("event %s, not %s\n", rpma_utils_conn_event_2str(event),
		       rpma_utils_conn_event_2str(want));
		die("event", 1);
	}
}

/* Waits for the next completion of the CQ, which must be of that operation. */
static struct ibv_wc completion(struct rpma_cq *cq, enum ibv_wc_opcode want)
{
	struct ibv_wc wc = { 0 };
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		must(rpma_cq_wait(cq));
	must(ret);
	if (wc.status != IBV_WC_SUCCESS || wc.opcode != want) {
		printf("completion %s, opcode %d, not %d\n", ibv_wc_status_str(wc.status),
		       wc.opcode, want);
		die("completion", 1);
	}
	return wc;
}

static struct rpma_conn_cfg *config(void)
{
	struct rpma_conn_cfg *cfg;

	must(rpma_conn_cfg_new(&cfg));
	must(rpma_conn_cfg_set_sq_size(cfg, AHEAD + 4));
	must(rpma_conn_cfg_set_rq_size(cfg, 4));
	must(rpma_conn_cfg_set_cq_size(cfg, AHEAD + 8));
	must(rpma_conn_cfg_set_rcq_size(cfg, 8));
	return cfg;
}

/* The result of a client with that number of rounds; then the memory is empty again. */
static void check_memory(uint8_t *m, int rounds)
{
	uint64_t word;

	for (size_t s = 0; s < SIZES; s++) {
		for (size_t i = 0; i < PLACE; i++) {
			uint8_t want = i < sizes[s] ? data_byte(rounds - 1, s, i) : 0;

			if (m[s * PLACE + i] != want) {
				printf("memory: size %zu, byte %zu is %d, not %d\n", sizes[s], i,
				       m[s * PLACE + i], want);
				die("memory", 1);
			}
		}
	}
	memcpy(&word, m + SIZES * PLACE, sizeof(word));
	if (word != (uint64_t)rounds * 1000)
		die("atomic write", 1);
	memset(m, 0, MEMORY);
}

/* One connection: "done ROUNDS" is answered with "right", an immediate is counted. */
static void serve_one(struct rpma_ep *ep, struct rpma_mr_local *mr, uint8_t *m,
		      struct rpma_mr_local *messages, uint8_t *text, struct rpma_srq *srq)
{
	struct rpma_conn_cfg *cfg = config();
	struct rpma_conn_private_data pdata;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	enum rpma_conn_event event;
	uint8_t descriptor[64];
	bool leaves;
	size_t n;
	int rounds;

	must(rpma_mr_get_descriptor_size(mr, &n));
	if (n > sizeof(descriptor))
		die("descriptor", 1);
	must(rpma_mr_get_descriptor(mr, descriptor));
	if (srq)
		must(rpma_conn_cfg_set_srq(cfg, srq));
	must(rpma_ep_next_conn_req(ep, cfg, &req));
	if (srq)
		must(rpma_srq_recv(srq, messages, 0, MESSAGE, NULL));
	else
		must(rpma_conn_req_recv(req, messages, 0, MESSAGE, NULL));
	must(rpma_conn_req_get_private_data(req, &pdata));
	leaves = pdata.ptr && !strcmp(pdata.ptr, "leave");
	pdata.ptr = descriptor;
	pdata.len = (uint8_t)n;
	must(rpma_conn_req_connect(&req, &pdata, &conn));
	want_event(conn, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_cq(conn, &cq));
	must(rpma_conn_get_rcq(conn, &rcq));
	if (srq)
		must(rpma_srq_get_rcq(srq, &rcq));
	if (leaves) {
		must(rpma_conn_next_event(conn, &event));
		printf("left: %s\n", rpma_utils_conn_event_2str(event));
	} else {
		completion(rcq, IBV_WC_RECV);
		if (sscanf((char *)text, "done %d", &rounds) != 1)
			die("message", 1);
		check_memory(m, rounds);
		strcpy((char *)text + MESSAGE, "right");
		must(rpma_send(conn, messages, MESSAGE, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL));
		completion(cq, IBV_WC_SEND);
		want_event(conn, RPMA_CONN_CLOSED);
	}
	fflush(stdout);
	rpma_conn_disconnect(conn);
	must(rpma_conn_delete(&conn));
	must(rpma_conn_cfg_delete(&cfg));
}

static void serve(const char *address, const char *port, int connections, bool with_srq)
{
	struct rpma_peer *peer = peer_at(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
	uint8_t *m = memory(MEMORY), *text = memory(4096);
	struct rpma_mr_local *mr, *messages;
	struct rpma_srq *srq = NULL;
	struct rpma_ep *ep;

	must(rpma_mr_reg(peer, m, MEMORY,
			 RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
				 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			 &mr));
	must(rpma_mr_reg(peer, text, 4096, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND, &messages));
	if (with_srq)
		must(rpma_srq_new(peer, NULL, &srq));
	must(rpma_ep_listen(peer, address, port, &ep));
	for (int i = 0; i < connections; i++)
		serve_one(ep, mr, m, messages, text, srq);
	must(rpma_ep_shutdown(&ep));
	if (srq)
		must(rpma_srq_delete(&srq));
	must(rpma_mr_dereg(&messages));
	must(rpma_mr_dereg(&mr));
	must(rpma_peer_delete(&peer));
	printf("server ok: %d connections\n", connections);
}

/* A round writes each size to its place, many writes at once; flushes; reads all of them back. */
static void round_trip(struct rpma_conn *conn, struct rpma_cq *cq, struct rpma_mr_remote *there,
		       struct rpma_mr_local *mr, uint8_t *m, int round)
{
	for (size_t s = 0; s < SIZES; s++) {
		size_t n = sizes[s], piece = n < AHEAD ? n : n / AHEAD;

		for (size_t i = 0; i < n; i++)
			m[i] = data_byte(round, s, i);
		for (size_t at = 0; at < n; at += piece) {
			size_t len = n - at < 2 * piece ? n - at : piece;

			must(rpma_write(conn, there, s * PLACE + at, mr, at, len,
					RPMA_F_COMPLETION_ON_ERROR, NULL));
			if (len != piece)
				break;
		}
		must(rpma_flush(conn, there, s * PLACE, n, RPMA_FLUSH_TYPE_VISIBILITY,
				RPMA_F_COMPLETION_ALWAYS, NULL));
		completion(cq, IBV_WC_RDMA_READ);
		memset(m, 0, n);
		must(rpma_read(conn, mr, 0, there, s * PLACE, n, RPMA_F_COMPLETION_ALWAYS, NULL));
		if (completion(cq, IBV_WC_RDMA_READ).byte_len != n)
			die("byte_len", 1);
		for (size_t i = 0; i < n; i++)
			if (m[i] != data_byte(round, s, i))
				die("read back", 1);
	}
	uint64_t word = (uint64_t)(round + 1) * 1000;

	must(rpma_atomic_write(conn, there, SIZES * PLACE, (const char *)&word,
			       RPMA_F_COMPLETION_ALWAYS, NULL));
	completion(cq, IBV_WC_RDMA_WRITE);
}

static void ask(const char *address, const char *port, int rounds)
{
	struct rpma_peer *peer = peer_at(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_conn_private_data pdata = { .ptr = "leave", .len = sizeof("leave") };
	uint8_t *m = memory(PLACE), *text = memory(4096);
	struct rpma_conn_cfg *cfg = config();
	struct rpma_mr_local *mr, *messages;
	struct rpma_mr_remote *there;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	size_t n;

	must(rpma_mr_reg(peer, m, PLACE,
			 RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC, &mr));
	must(rpma_mr_reg(peer, text, 4096, RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_SEND, &messages));
	must(rpma_conn_req_new(peer, address, port, cfg, &req));
	must(rpma_conn_req_recv(req, messages, MESSAGE, MESSAGE, NULL));
	must(rpma_conn_req_connect(&req, rounds ? NULL : &pdata, &conn));
	want_event(conn, RPMA_CONN_ESTABLISHED);
	if (!rounds) {
		printf("connected\n");
		fflush(stdout);
		pause();
	}
	must(rpma_conn_get_private_data(conn, &pdata));
	/* librdmacm returns the maximum room for private data: our descriptor is as long */
	must(rpma_mr_get_descriptor_size(mr, &n));
	must(rpma_mr_remote_from_descriptor(pdata.ptr, n, &there));
	must(rpma_mr_remote_get_size(there, &n));
	if (n != MEMORY)
		die("size of the server's memory", 1);
	must(rpma_conn_get_cq(conn, &cq));
	must(rpma_conn_get_rcq(conn, &rcq));
	for (int round = 0; round < rounds; round++)
		round_trip(conn, cq, there, mr, m, round);
	snprintf((char *)text, MESSAGE, "done %d", rounds);
	must(rpma_send(conn, messages, 0, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL));
	completion(cq, IBV_WC_SEND);
	completion(rcq, IBV_WC_RECV);
	if (strcmp((char *)text + MESSAGE, "right"))
		die("answer", 1);
	must(rpma_conn_disconnect(conn));
	want_event(conn, RPMA_CONN_CLOSED);
	must(rpma_mr_remote_delete(&there));
	must(rpma_conn_delete(&conn));
	must(rpma_conn_cfg_delete(&cfg));
	must(rpma_mr_dereg(&messages));
	must(rpma_mr_dereg(&mr));
	must(rpma_peer_delete(&peer));
	printf("client ok: %d rounds\n", rounds);
}

int main(int argc, char **argv)
{
	if (argc >= 5 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3], atoi(argv[4]), argc > 5);
	else if (argc == 5 && !strcmp(argv[1], "ask"))
		ask(argv[2], argv[3], atoi(argv[4]));
	else if (argc == 4 && !strcmp(argv[1], "leave"))
		ask(argv[2], argv[3], 0);
	else
		return 2;
	return 0;
}
