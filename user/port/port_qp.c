/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's QPs and their numbers, which are unique among the processes of an interface: the broker
 * of a shared interface draws them, else the engine does.
 *
 * When a port becomes shared (share.c), it reports its steered numbers to the broker. So each
 * number in use is steered, or the thread that makes its QP holds port->numbers, which comes before
 * the shards' locks.
 */
#include <errno.h>

#include "../attach/attach_error.h"
#include "port_object.h"

/*
 * A number is unusable if its slot in the engine's table is taken: one in four with 4096 QPs. With
 * one free slot left, one number in 16384 is usable.
 */
#define DRAWS_MAX (16 * XROCE_MAX_QP)

/* Converts the broker's error for a QP: a limit becomes -ENOSPC, with a line the first time. */
static int port_limited(struct port *port, int err)
{
	const bool met = err == -EDQUOT || err == -ENOSPC;

	if (!met || !port->shards.shared)
		return err;
	if (atomic_exchange_explicit(&port->told_limit, true, memory_order_relaxed))
		return -ENOSPC;
	return attach_limited(port->shards.name, "QPs", "--max-qps", err);
}

static int port_draw(struct port *port, u32 *qpn)
{
	*qpn = 0;
	return port->shards.dead ? 0 : port_limited(port, attach_draw(&port->made, qpn));
}

/* Creates a QP and publishes it to XDP. All shards locked. Returns 0 or -errno. */
static int port_make_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out)
{
	int err;

	init->stat = port_take_qp_stat(port);
	err = qp_create(e, init, out);
	if (!err)
		shards_steer(&port->shards, *out);
	if (!err && init->qpn != XROCE_CM_QPN)
		port->qps_made[init->transport]++;
	if (err)
		port_give_qp_stat(port, init->stat);
	else if (init->srq)
		port_show_srq(port, init->srq);
	return err;
}

void port_destroy_qp(struct port *port, struct qp *qp)
{
	struct xroce_qp_stat *stat = qp->stat_own ? NULL : qp->stat;
	struct srq *srq = qp->srq;

	port_catch_up(port);
	shards_unsteer(&port->shards, qp->qpn);
	qp_destroy(port_engine(port), qp);
	port_give_qp_stat(port, stat);
	/* an XRC SRQ stays with the engine until it is destroyed */
	if (srq && !srq->xrcd && !users_engines(&srq->users))
		port_hide_srq(port, srq);
}

/* Creates a QP with a number of this process; releases the number on failure. */
static int port_make_numbered(struct port *port, struct engine *e, struct qp_init *init,
			      struct qp **out)
{
	int err;

	port_lock(port);
	err = port_make_qp(port, e, init, out);
	port_unlock(port);
	if (err && init->qpn)
		attach_release(&port->made, init->qpn);
	return err;
}

/* Creates this process's QP 1, after a claim at the broker, which directs MADs to QPs 1. */
static int port_make_qp1(struct port *port, struct engine *e, struct qp_init *init,
			 struct qp **out)
{
	int err = port->shards.dead ? 0 : attach_claim(&port->made, XROCE_CM_QPN);

	if (!err)
		err = port_make_numbered(port, e, init, out);
	return err == -EEXIST || err == -EALREADY ? -EBUSY : err;
}

static int port_make_other(struct port *port, struct engine *e, struct qp_init *init,
			   struct qp **out)
{
	int err = -EEXIST;

	for (u32 draws = 0; err == -EEXIST && draws < DRAWS_MAX; draws++) {
		err = port_draw(port, &init->qpn);
		if (err)
			return err;
		err = port_make_numbered(port, e, init, out);
	}
	return err == -EEXIST ? -ENOSPC : err;
}

/* Shared interfaces have no raw packet QPs, and share.c admits no process while there are any. */
static bool port_is_shared(struct port *port)
{
	bool shared;

	port_lock(port);
	shared = port->shards.shared;
	port_unlock(port);
	return shared;
}

int port_create_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out)
{
	int err;

	pthread_mutex_lock(&port->numbers);
	if (init->transport == XROCE_RAW && port_is_shared(port))
		err = -EOPNOTSUPP;
	else
		err = init->qpn == XROCE_CM_QPN ? port_make_qp1(port, e, init, out) :
						  port_make_other(port, e, init, out);
	pthread_mutex_unlock(&port->numbers);
	return err;
}

void port_release(struct port *port, u32 qpn)
{
	if (port->shards.dead)
		return;
	pthread_mutex_lock(&port->numbers);
	attach_release(&port->made, qpn);
	pthread_mutex_unlock(&port->numbers);
}
