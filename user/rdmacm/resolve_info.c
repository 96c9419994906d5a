/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_resolve_addrinfo(): rdma_getaddrinfo() in a pool thread, as a name server may take seconds.
 * The result waits in the id for rdma_query_addrinfo(). Also rdma_write_cm_event(), by which a
 * program notifies its own thread.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "cm_thread.h"
#include "id.h"
#include "newer.h"

/* A question, with copies of the program's arguments; the pool thread's until it is answered. */
struct info_question {
	struct cm_work work;
	struct rdmacm_id *id; /* NULL: the id was destroyed; under the lock */
	char *node, *service;
	struct rdma_addrinfo hints;
	bool has_hints;
	struct rdma_addrinfo *info; /* the answer */
	int status;		    /* or 0 or -errno */
};

static void question_free(struct info_question *q)
{
	free(q->node);
	free(q->service);
	free(q->hints.ai_src_addr);
	free(q->hints.ai_dst_addr);
	free(q);
}

/* Copies n bytes if there are any. Returns false without memory. */
static bool copy_bytes(void *to, const void *from, size_t n)
{
	void *copy = n ? malloc(n) : NULL;

	if (copy)
		memcpy(copy, from, n);
	memcpy(to, &copy, sizeof(copy));
	return copy || !n;
}

/* Returns a question without an id, or NULL without memory. Only addresses of the hints count. */
static struct info_question *question_new(const char *node, const char *service,
					  const struct rdma_addrinfo *hints)
{
	struct info_question *q = calloc(1, sizeof(*q));
	bool copied;

	if (!q)
		return NULL;
	copied = copy_bytes(&q->node, node, node ? strlen(node) + 1 : 0) &&
		 copy_bytes(&q->service, service, service ? strlen(service) + 1 : 0);
	if (hints) {
		q->has_hints = true;
		q->hints = (struct rdma_addrinfo){ .ai_flags = hints->ai_flags,
						   .ai_family = hints->ai_family,
						   .ai_qp_type = hints->ai_qp_type,
						   .ai_port_space = hints->ai_port_space,
						   .ai_src_len = hints->ai_src_len,
						   .ai_dst_len = hints->ai_dst_len };
		copied = copied &&
			 copy_bytes(&q->hints.ai_src_addr, hints->ai_src_addr, hints->ai_src_len) &&
			 copy_bytes(&q->hints.ai_dst_addr, hints->ai_dst_addr, hints->ai_dst_len);
	}
	if (copied)
		return q;
	question_free(q);
	return NULL;
}

/* Converts an error of getaddrinfo(3) to -errno, which events report. */
static int info_errno(int eai)
{
	switch (eai) {
	case EAI_SYSTEM:
		return -errno;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -EAGAIN;
	case EAI_NONAME:
		return -ENOENT;
	default:
		return -EINVAL;
	}
}

static void info_ask(struct cm_work *work)
{
	struct info_question *q = container_of(work, struct info_question, work);
	int err;

	errno = 0; /* -1 is also an error of getaddrinfo(3), EAI_BADFLAGS */
	err = rdma_getaddrinfo(q->node, q->service, q->has_hints ? &q->hints : NULL, &q->info);
	if (err)
		q->status = err == -1 && errno ? -errno : info_errno(err);
}

/* Called with the lock. An error leaves no result, and the id can ask again. */
static void info_answered(struct cm_work *work)
{
	struct info_question *q = container_of(work, struct info_question, work);
	struct rdmacm_id *id = q->id;

	if (id) {
		id->info_question = NULL;
		id->info = q->info;
		event_tell(id, q->status ? EVENT_ADDRINFO_ERROR : EVENT_ADDRINFO_RESOLVED,
			   q->status);
	} else {
		rdma_freeaddrinfo(q->info);
	}
	question_free(q);
}

void info_forget(struct rdmacm_id *id)
{
	if (id->info_question)
		id->info_question->id = NULL;
	id->info_question = NULL;
}

/* Checks the arguments. Returns 0 or -errno. No port of this library has an SA. */
static int info_check(const char *node, const char *service, const struct rdma_addrinfo *hints)
{
	if (hints && hints->ai_flags & RAI_SA)
		return -EOPNOTSUPP;
	return node || service || hints ? 0 : -EINVAL;
}

static int info_resolve(struct rdmacm_id *id, const char *node, const char *service,
			const struct rdma_addrinfo *hints)
{
	struct info_question *q;
	int err = info_check(node, service, hints);

	if (!err)
		err = cm_thread_start();
	if (err)
		return err;
	q = question_new(node, service, hints);
	if (!q)
		return -ENOMEM;
	q->work.do_work = info_ask;
	q->work.done = info_answered;
	rdmacm_enter();
	if (id->info || id->info_question) {
		rdmacm_leave();
		question_free(q);
		return -EBUSY;
	}
	q->id = id;
	id->info_question = q;
	cm_work_add(&q->work);
	rdmacm_leave();
	return id_complete(id);
}

/* EBUSY until the result of an earlier call has been queried, or its error reported. */
EXPORT int rdma_resolve_addrinfo(struct rdma_cm_id *cm_id, const char *node, const char *service,
				 const struct rdma_addrinfo *hints)
{
	CANCEL_HELD;
	int err = cm_id ? id_check(to_id(cm_id)) : -EINVAL;

	return rdmacm_report(err ? err : info_resolve(to_id(cm_id), node, service, hints));
}

EXPORT int rdma_query_addrinfo(struct rdma_cm_id *cm_id, struct rdma_addrinfo **info)
{
	CANCEL_HELD;
	struct rdmacm_id *id = to_id(cm_id);
	int err = cm_id && info ? id_check(id) : -EINVAL;

	if (err)
		return rdmacm_report(err);
	rdmacm_enter();
	err = id->info ? 0 : -ENOENT;
	if (!err)
		*info = id->info;
	id->info = NULL;
	rdmacm_leave();
	return rdmacm_report(err);
}

/* Only RDMA_CM_EVENT_USER: programs cannot pretend events of the CM. */
EXPORT int rdma_write_cm_event(struct rdma_cm_id *cm_id, enum rdma_cm_event_type type, int status,
			       uint64_t arg)
{
	CANCEL_HELD;
	int err = cm_id && type == EVENT_USER ? id_check(to_id(cm_id)) : -EINVAL;
	struct rdmacm_event *ev = err ? NULL : event_new(to_id(cm_id), type, status);

	if (!ev)
		return rdmacm_report(err ? err : -ENOMEM);
	memcpy(&ev->pub.param, &arg, sizeof(arg)); /* param.arg, which old headers lack */
	rdmacm_enter();
	event_post(ev);
	rdmacm_leave();
	return 0;
}
