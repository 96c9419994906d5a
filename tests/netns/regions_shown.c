/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory regions and windows as `xroce mr` shows them, against the real ones after each change:
 * registered, re-registered, bound, invalidated, destroyed; in the program and in a forked child.
 *
 *	regions_shown DEVICE XROCE
 *
 * Prints "ok STEP" or "not ok STEP" for each, with the shown and the correct values.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"
#include "lib/rc.h"

#define ALL    (IBV_ACCESS_LOCAL_WRITE | RC_ACCESS | IBV_ACCESS_MW_BIND)
#define MOST   64
#define RIGHTS 4

static const char *const right_names[RIGHTS] = { "write", "rwrite", "rread", "ratomic" };
static const int right_flags[RIGHTS] = { IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE,
					 IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_ATOMIC };

struct row {
	uint32_t key;
	char kind[16];
	unsigned long long addr, length;
	int access; /* of the shown regions */
};

static char page[16384] __attribute__((aligned(4096)));
static const char *xroce;
static bool failed;
static struct row shown[MOST];
static int shown_n;

/* Parses the rights in the rest of a line, separated by spaces or commas. */
static int rights_of(char *text)
{
	int access = 0;

	for (char *word = strtok(text, " ,|\n"); word; word = strtok(NULL, " ,|\n"))
		for (int i = 0; i < RIGHTS; i++)
			if (!strcmp(word, right_names[i]))
				access |= right_flags[i];
	return access;
}

/* Reads the rows of this process that have a length. */
static void look(pid_t pid)
{
	char command[512], line[512];
	FILE *f;

	snprintf(command, sizeof(command), "%s mr --pid %d", xroce, (int)pid);
	f = popen(command, "r");
	shown_n = 0;
	while (f && fgets(line, sizeof(line), f)) {
		struct row *r = &shown[shown_n];
		int rest = 0;

		if (sscanf(line, "%*s %*d %*s %x %15s %llx %llu %n", &r->key, r->kind, &r->addr,
			   &r->length, &rest) < 4 ||
		    !r->length || shown_n == MOST - 1)
			continue;
		r->access = rights_of(line + rest);
		shown_n++;
	}
	if (!f || pclose(f))
		printf("# %s failed\n", command);
}

static bool is_shown(const struct row *want)
{
	int n = 0;

	for (int i = 0; i < shown_n; i++) {
		const struct row *r = &shown[i];

		n += r->key == want->key && !strcmp(r->kind, want->kind) && r->addr == want->addr &&
		     r->length == want->length && r->access == want->access;
	}
	return n == 1;
}

static void print_rows(const char *what, const struct row *r, int n)
{
	for (int i = 0; i < n; i++)
		printf("# %s: %08x %s %llx %llu rights %x\n", what, r[i].key, r[i].kind, r[i].addr,
		       r[i].length, (unsigned int)r[i].access);
}

static void step(const char *name, const struct row *want, int n)
{
	bool good;

	look(getpid());
	good = shown_n == n;
	for (int i = 0; i < n; i++)
		good &= is_shown(&want[i]);
	if (!good) {
		print_rows("right", want, n);
		print_rows("shown", shown, shown_n);
		failed = true;
	}
	printf("%s %s\n", good ? "ok" : "not ok", name);
	fflush(stdout);
}

static struct row region(const struct ibv_mr *mr, int access)
{
	struct row r = { .key = mr->rkey,
			 .kind = "region",
			 .addr = (uintptr_t)mr->addr,
			 .length = mr->length,
			 .access = access & ~IBV_ACCESS_MW_BIND };

	return r;
}

static struct row window(const struct ibv_mw *mw, uint64_t addr, uint64_t length, int access)
{
	struct row r = { .key = mw->rkey, .addr = addr, .length = length, .access = access };

	strcpy(r.kind, mw->type == IBV_MW_TYPE_1 ? "window-1" : "window-2");
	return r;
}

/* Returns the status of the next completed request; the receive has number 1. */
static int completed(struct ibv_qp *qp)
{
	struct ibv_wc wc;

	do
		wc = rc_wait(qp->send_cq, "a request");
	while (wc.wr_id == 1);
	return (int)wc.status;
}

static void request(struct ibv_qp *qp, struct ibv_send_wr wr, int status)
{
	struct ibv_send_wr *bad;

	wr.send_flags = IBV_SEND_SIGNALED;
	must(!ibv_post_send(qp, &wr, &bad), "request");
	must(completed(qp) == status, "status of a request");
}

static struct ibv_qp *loop(struct ibv_context *device, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(device, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 8, 8, 1, 1, 0 }
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct rc_address own = { .psn = 7 };
	struct rc_options o = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

	must(qp && !ibv_query_gid(device, 1, 0, &own.gid), "queue pair");
	own.qpn = qp->qp_num;
	rc_connect(qp, &own, &own, &o);
	return qp;
}

/* A child destroys its copies: the shown state of its parent stays. */
static void fork_and_end(struct ibv_mr *mr, struct ibv_mw *mw)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(ibv_dealloc_mw(mw) || ibv_dereg_mr(mr));
	must(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "child");
}

int main(int argc, char **argv)
{
	struct ibv_context *device = argc == 3 ? open_device(argv[1]) : NULL;
	const uint64_t base = (uintptr_t)page;
	struct ibv_pd *pd, *other;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *second;
	struct ibv_mw *type1, *type2;
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr wr;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad;
	struct row want[4];

	if (!device)
		return 2;
	xroce = argv[2];
	pd = ibv_alloc_pd(device);
	other = ibv_alloc_pd(device);
	must(pd && other, "PD");
	qp = loop(device, pd);
	mr = ibv_reg_mr(pd, page, 4096, ALL);
	must(mr, "region");
	want[0] = region(mr, ALL);
	step("registered", want, 1);

	must(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, page + 4096, 8192, 0),
	     "rereg");
	want[0] = region(mr, ALL);
	must(want[0].addr == base + 4096 && want[0].length == 8192, "fields");
	step("another_translation", want, 1);

	must(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ),
	     "rereg");
	want[0] = region(mr, IBV_ACCESS_REMOTE_READ);
	step("other_rights", want, 1);

	must(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
			  page, 64, IBV_ACCESS_REMOTE_WRITE),
	     "rereg that fails");
	step("after_a_failure", want, 1);

	must(!ibv_rereg_mr(mr,
			   IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS |
				   IBV_REREG_MR_CHANGE_PD,
			   other, page, sizeof(page), ALL),
	     "rereg");
	want[0] = region(mr, ALL);
	step("all_at_once", want, 1);
	must(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), "rereg");
	step("another_pd", want, 1);

	second = ibv_reg_mr(pd, page + 100, 1, 0);
	must(second, "second region");
	want[1] = region(second, 0);
	step("two_regions", want, 2);

	type1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	type2 = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	must(type1 && type2, "windows");
	step("windows_that_are_not_bound", want, 2);

	bind.bind_info = (struct ibv_mw_bind_info){ mr, base + 64, 100, IBV_ACCESS_REMOTE_WRITE };
	must(!ibv_bind_mw(qp, type1, &bind), "bind");
	must(completed(qp) == IBV_WC_SUCCESS, "status of a bind");
	want[2] = window(type1, base + 64, 100, IBV_ACCESS_REMOTE_WRITE);
	step("type1_bound", want, 3);

	bind.bind_info =
		(struct ibv_mw_bind_info){ mr, base + 128, 7,
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };
	must(!ibv_bind_mw(qp, type1, &bind), "bind");
	must(completed(qp) == IBV_WC_SUCCESS, "status of a bind");
	want[2] = window(type1, base + 128, 7, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	step("type1_bound_again", want, 3);

	wr = (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW,
				   .bind_mw = { type2,
						ibv_inc_rkey(type2->rkey),
						{ mr, base + 4096, 4096, RC_ACCESS } } };
	request(qp, wr, IBV_WC_SUCCESS);
	want[3] = window(type2, base + 4096, 4096, RC_ACCESS);
	step("type2_bound", want, 4);

	must(ibv_dereg_mr(mr), "busy region");
	step("a_busy_region", want, 4);
	fork_and_end(second, type1);
	step("after_a_child", want, 4);

	must(!ibv_post_recv(qp, &recv, &bad), "receive");
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = type2->rkey };
	request(qp, wr, IBV_WC_SUCCESS);
	step("type2_invalidated", want, 3);

	bind.bind_info = (struct ibv_mw_bind_info){ 0 };
	must(!ibv_bind_mw(qp, type1, &bind), "unbind");
	must(completed(qp) == IBV_WC_SUCCESS, "status of a bind");
	step("type1_unbound", want, 2);

	wr = (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW,
				   .bind_mw = { type2,
						ibv_inc_rkey(type2->rkey),
						{ mr, base, sizeof(page) + 1, RC_ACCESS } } };
	request(qp, wr, IBV_WC_MW_BIND_ERR);
	step("a_bind_that_fails", want, 2);

	must(!ibv_dealloc_mw(type1) && !ibv_dealloc_mw(type2) && !ibv_dereg_mr(mr), "end");
	want[0] = want[1];
	step("one_is_left", want, 1);
	must(!ibv_dereg_mr(second), "end");
	step("none_is_left", want, 0);
	return failed;
}
