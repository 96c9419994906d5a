/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of a port's QPs. Of an interface that processes share the broker draws them, as they are
 * unique among all; of one that a process has alone, the engine does.
 *
 * A process that has one alone may become one of several (share.c), whose broker is then told the
 * numbers that are steered. So one that is in use is steered, or its maker holds the lock of the
 * numbers, which comes before the shards'.
 */
#include <errno.h>

#include "../attach/attach_error.h"
#include "port_object.h"

/*
 * A number is of no use where its place in the engine's table is taken: one in four with 4096 QPs,
 * and of a table with one place left one in 16384 fits.
 */
#define DRAWS_MAX (16 * XROCE_MAX_QP)

/* The answer of the broker to a question for a QP: of a limit there is a line, once. */
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

/* Known to XDP from here on. With the port's lock. */
static int port_make_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out)
{
	int err;

	init->stat = port_take_qp_stat(port);
	err = qp_create(e, init, out);
	if (!err) {
		err = shards_steer(&port->shards, *out);
		if (err)
			qp_destroy(e, *out);
	}
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
	/* an XRC SRQ is the engine's until it goes */
	if (srq && !srq->xrcd && !users_engines(&srq->users))
		port_hide_srq(port, srq);
}

/* With a number that is this process's, which it is no more if that fails. */
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

/* QP 1, of which each process has its own. The broker is told: MADs come to those that have one. */
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

/* What others share, one cannot take frames from: share.c lets nobody in while there are such. */
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
