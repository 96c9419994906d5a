/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Faults on request, by the rules of XROCE_FAULT (xroce-lab(8)). They are read when the process
 * opens its first device, and hold until its end. Calls of data that a rule could fail have a
 * second function each in the context's table, so that a process without rules pays nothing there.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../fault/endpoint.h"
#include "../os/complain.h"
#include "objects.h"
#include "xroce_cm.h"

bool faults_are_on;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next three */
static bool is_loaded;
static int load_error; /* a positive errno, or 0 */
static struct fault_table *table;

/* ---- the environment ---- */

/* Leaves the descriptor at the lab's socket. Returns 0 or a positive errno. */
static int results_report(int results_fd, const char *name)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec data = { "", 1 };
	const struct msghdr msg = { .msg_iov = &data,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control) };
	const size_t len = strlen(name);
	int err = fd < 0 ? errno : len < sizeof(address.sun_path) ? 0 : ENAMETOOLONG;

	if (!err) {
		memcpy(address.sun_path + 1, name, len);
		memcpy(CMSG_DATA(&control.head), &results_fd, sizeof(results_fd));
		if (connect(fd, (const struct sockaddr *)&address,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ||
		    sendmsg(fd, &msg, MSG_NOSIGNAL) != 1)
			err = errno;
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/*
 * Sets *out to memory for the results: private, or what the lab at an abstract address gets.
 * Returns 0 or a positive errno.
 */
static int results_new(const char *name, struct fault_results **out)
{
	const size_t bytes = sizeof(struct fault_results);
	struct rlimit most;
	void *at;
	int fd, err;

	if (!name) {
		*out = calloc(1, bytes);
		return *out ? 0 : ENOMEM;
	}
	/* beyond the limit ftruncate(2) would end the process by SIGXFSZ */
	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur < bytes)
		return EFBIG;
	fd = memfd_create("xroce-fault", MFD_CLOEXEC);
	if (fd < 0)
		return errno;
	at = ftruncate(fd, (off_t)bytes) ?
		     MAP_FAILED :
		     mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	err = at == MAP_FAILED ? errno : results_report(fd, name);
	if (err && at != MAP_FAILED)
		munmap(at, bytes);
	close(fd);
	*out = at;
	return err;
}

static bool seed_parse(const char *text, u64 *seed)
{
	char *end;

	*seed = 1;
	if (!text)
		return true;
	errno = 0;
	*seed = strtoull(text, &end, 0);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static int table_load(const char *text)
{
	const char *report = secure_getenv("XROCE_FAULT_REPORT");
	const char *seed_text = secure_getenv("XROCE_FAULT_SEED");
	struct fault_results *results = NULL;
	char wrong[LAB_RULE_TEXT];
	struct lab_error error;
	u64 seed;
	int err;

	if (!seed_parse(seed_text, &seed)) {
		complain("XROCE_FAULT_SEED: '%s' is not a number", seed_text);
		return EINVAL;
	}
	err = results_new(report, &results);
	if (err) {
		complain("XROCE_FAULT_REPORT: cannot report to %s: %s", report ? report : "memory",
			 strerror(err));
		return err;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return ENOMEM;
	if (!fault_parse(table, text, seed, results, &error, wrong)) {
		complain("XROCE_FAULT: '%.*s' in rule '%s': %s", (int)error.len, wrong + error.at,
			 wrong, error.why);
		return EINVAL;
	}
	port_set_faults(fault_engine(table));
	faults_are_on = true;
	return 0;
}

int faults_load(void)
{
	const char *text;
	int err;

	pthread_mutex_lock(&load_lock);
	text = is_loaded ? NULL : secure_getenv("XROCE_FAULT");
	if (text)
		load_error = table_load(text);
	is_loaded = true;
	err = load_error;
	pthread_mutex_unlock(&load_lock);
	return err;
}

/* The child reads the rules again when it opens a device, and counts by itself. */
static void faults_in_child(void)
{
	pthread_mutex_init(&load_lock, NULL);
	is_loaded = faults_are_on = false;
	load_error = 0;
	table = NULL;
	port_set_faults(NULL);
}

__attribute__((constructor)) static void faults_register(void)
{
	pthread_atfork(NULL, NULL, faults_in_child);
}

/* ---- calls ---- */

static void raise_event(struct vcontext *ctx, enum lab_event event)
{
	static const enum ibv_event_type types[LAB_NUM_EVENTS] = {
		[LAB_EVENT_CLIENT_REREGISTER] = IBV_EVENT_CLIENT_REREGISTER,
		[LAB_EVENT_DEVICE_FATAL] = IBV_EVENT_DEVICE_FATAL,
		[LAB_EVENT_GID_CHANGE] = IBV_EVENT_GID_CHANGE,
		[LAB_EVENT_LID_CHANGE] = IBV_EVENT_LID_CHANGE,
		[LAB_EVENT_PKEY_CHANGE] = IBV_EVENT_PKEY_CHANGE,
		[LAB_EVENT_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
		[LAB_EVENT_PORT_ERR] = IBV_EVENT_PORT_ERR,
		[LAB_EVENT_SM_CHANGE] = IBV_EVENT_SM_CHANGE,
	};

	if (event == LAB_EVENT_DEVICE_FATAL)
		async_device_fatal(ctx);
	else
		async_queue_port(ctx, types[event]);
}

bool fault_fails(struct ibv_context *context, enum lab_call call)
{
	enum lab_event event;
	const int err = fault_call(table, call, &event);

	if (event != LAB_NUM_EVENTS && context)
		raise_event(to_vcontext(context), event);
	if (err)
		errno = err;
	return err;
}

EXPORT uint16_t xroce_cm_reject(void)
{
	return unlikely(faults_are_on) ? fault_reject(table) : 0;
}

void fault_know(const struct vqp *vqp)
{
	if (vqp->qp->qpn != XROCE_CM_QPN)
		fault_know_qp(table, vqp->qp->qpn);
}

static int failing_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	if (verb_fails(cq->context, CALL_ibv_poll_cq))
		return -errno;
	return poll_cq_op(cq, num_entries, wc);
}

static int failing_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	if (verb_fails(cq->context, CALL_ibv_req_notify_cq))
		return verb_report(errno);
	return req_notify_cq_op(cq, solicited_only);
}

/* QP 1 is the connection manager's, not the program's. */
static bool is_programs(const struct ibv_qp *qp)
{
	return qp->qp_num != XROCE_CM_QPN;
}

static int failing_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	if (is_programs(qp) && verb_fails(qp->context, CALL_ibv_post_send)) {
		*bad_wr = wr;
		return verb_report(errno);
	}
	return post_send_op(qp, wr, bad_wr);
}

static int failing_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	if (is_programs(qp) && verb_fails(qp->context, CALL_ibv_post_recv)) {
		*bad_wr = wr;
		return verb_report(errno);
	}
	return post_recv_op(qp, wr, bad_wr);
}

static int failing_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
				 struct ibv_recv_wr **bad_wr)
{
	if (verb_fails(srq->context, CALL_ibv_post_srq_recv)) {
		*bad_wr = wr;
		return verb_report(errno);
	}
	return post_srq_recv_op(srq, wr, bad_wr);
}

void fault_set_ops(struct ibv_context_ops *ops)
{
	ops->poll_cq = failing_poll_cq;
	ops->req_notify_cq = failing_req_notify_cq;
	ops->post_send = failing_post_send;
	ops->post_recv = failing_post_recv;
	ops->post_srq_recv = failing_post_srq_recv;
}
