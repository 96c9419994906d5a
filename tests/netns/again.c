/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that keeps its device open while an administrator changes the interface, and makes a
 * new connection at each request: a new RC queue pair, and one message of 9000 bytes each way.
 *
 *	again -d DEVICE [-g GID-INDEX] [-m PATH-MTU] [-p PORT]	a server, until it is killed
 *	again -d DEVICE [-g GID-INDEX] [-m PATH-MTU] [-p PORT] HOST	one exchange with a server
 *
 * The server serves one client after the other. On SIGUSR1 it exchanges messages between two local
 * queue pairs. It prints a line "right N" after its Nth exchange. A failed exchange ends the
 * process with status 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define MESSAGE 9000u

struct end {
	struct ibv_qp *qp;
	struct rc_address own, peer;
	char *out, *in; /* MESSAGE bytes each */
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static _Alignas(4096) char memory[4 * MESSAGE];
static struct rc_options options = { .timeout = 16, .retry_cnt = 7, .rnr_retry = 7 };
static volatile sig_atomic_t asked;

static void on_signal(int s)
{
	(void)s;
	asked = 1;
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	must(qp, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

static char byte_of(uint32_t qpn, uint32_t i)
{
	return (char)((qpn ^ i * 0x9e3779b1u) >> 13);
}

/* Opens end n, 0 or 1, of an exchange: a queue pair, and its halves of the memory. */
static struct end end_open(unsigned int n)
{
	struct end e = { .qp = make_qp(),
			 .out = memory + 2 * n * MESSAGE,
			 .in = memory + (2 * n + 1) * MESSAGE };

	e.own = (struct rc_address){ .qpn = e.qp->qp_num, .psn = e.qp->qp_num >> 3 };
	must(!ibv_query_gid(ctx, 1, options.gid_index, &e.own.gid), "ibv_query_gid: %s",
	     strerror(errno));
	for (uint32_t i = 0; i < MESSAGE; i++)
		e.out[i] = byte_of(e.own.qpn, i);
	memset(e.in, 0, MESSAGE);
	return e;
}

static void end_connect(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->in, MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	rc_connect(e->qp, &e->own, &e->peer, &options);
	must(!ibv_post_recv(e->qp, &wr, &bad), "ibv_post_recv");
}

static void end_send(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->out, MESSAGE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	must(!ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
}

static void take_completions(unsigned int n)
{
	while (n--) {
		const struct ibv_wc wc = rc_wait(cq, "an exchange");

		must(wc.status == IBV_WC_SUCCESS, "a completion: %s", ibv_wc_status_str(wc.status));
		must(wc.opcode != IBV_WC_RECV || wc.byte_len == MESSAGE, "%u bytes have come",
		     wc.byte_len);
	}
}

static void end_verify(const struct end *e)
{
	for (uint32_t i = 0; i < MESSAGE; i++)
		must(e->in[i] == byte_of(e->peer.qpn, i), "byte %u is wrong", i);
}

static void exchange_with(int ctl)
{
	struct end e = end_open(0);

	ctl_swap(ctl, &e.own, &e.peer, sizeof(e.own));
	end_connect(&e);
	ctl_barrier(ctl, 1);
	end_send(&e);
	take_completions(2);
	end_verify(&e);
	ctl_barrier(ctl, 2);
	must(!ibv_destroy_qp(e.qp), "ibv_destroy_qp");
}

static void exchange_with_itself(void)
{
	struct end a = end_open(0), b = end_open(1);

	a.peer = b.own;
	b.peer = a.own;
	end_connect(&a);
	end_connect(&b);
	end_send(&a);
	end_send(&b);
	take_completions(4);
	end_verify(&a);
	end_verify(&b);
	must(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp), "ibv_destroy_qp");
}

static int listen_at(const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	must(fd >= 0, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 8), "port %s: %s", port,
	     strerror(errno));
	return fd;
}

static void say_right(void)
{
	static unsigned int n;

	printf("right %u\n", ++n);
	fflush(stdout);
}

static void serve(const char *port)
{
	const struct sigaction action = { .sa_handler = on_signal };
	/* for accept(2), as a signal may arrive just before it; and for a client's messages */
	const struct timeval look = { .tv_sec = 1 }, bound = { .tv_sec = WAIT_MS / 1000 };
	int listener = listen_at(port), fd;

	sigaction(SIGUSR1, &action, NULL);
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
	for (;;) {
		fd = accept(listener, NULL, NULL);
		if (asked) {
			asked = 0;
			exchange_with_itself();
			say_right();
		}
		if (fd >= 0) {
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
			exchange_with(fd);
			close(fd);
			say_right();
		}
	}
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18650";
	int c;

	while ((c = getopt(argc, argv, "d:g:m:p:")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			options.gid_index = (uint8_t)atoi(optarg);
			break;
		case 'm':
			c = __builtin_ctz((unsigned int)atoi(optarg));
			options.path_mtu = (enum ibv_mtu)(c - 7); /* IBV_MTU_256 is 1 */
			break;
		case 'p':
			port = optarg;
			break;
		default:
			die("again: wrong option");
		}
	}
	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd: %s", strerror(errno));
	must((cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "ibv_create_cq: %s", strerror(errno));
	must((mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	make_qp(); /* stays, and keeps the port */
	if (argv[optind]) {
		exchange_with(ctl_open(argv[optind], port));
		say_right();
	} else {
		serve(port);
	}
	return 0;
}
