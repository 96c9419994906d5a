/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's QPs and their numbers, which are unique among the processes of an interface, as the
 * broker draws them. port->numbers comes before the shards' locks.
 */
#include <errno.h>

#include "../client/attach_error.h"
#include "port_object.h"

/*
 * A number is unusable if its slot in the engine's table is taken: one in four with 4096 QPs. With
 * one free slot left, one number in 16384 is usable.
 */
#define DRAWS_MAX (16 * XROCE_MAX_QP)

/* No shard locked. */
static bool port_is_shared(struct port *port)
{
	bool shared;

	port_lock(port);
	shared = port->shards.shared;
	port_unlock(port);
	return shared;
}

/* Converts the broker's error for a QP: a limit becomes -ENOSPC, with a line the first time. */
static int port_limited(struct port *port, int err)
{
	const bool met = err == -EDQUOT || err == -ENOSPC;

	if (!met || !port_is_shared(port))
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

/*
 * Shared interfaces have no raw packet QPs. Returns whether this port may have one: then no other
 * process is admitted until port_release_raw().
 */
static bool port_take_raw(struct port *port)
{
	struct xroce_engine *engine = port->made.maps.engine;
	const bool shared = port_is_shared(port);

	if (shared || port->shards.dead)
		return !shared;
	/* seq_cst, both: pairs with sole_forbid_raw() (user/broker/sole.c) */
	atomic_store_explicit(shared_word(&engine->raw), 1, memory_order_seq_cst);
	return !atomic_load_explicit(shared_word(&engine->others), memory_order_seq_cst);
}

/* All shards locked. */
static void port_release_raw(struct port *port)
{
	if (!raw_any(port_engine(port)))
		atomic_store_explicit(shared_word(&port->made.maps.engine->raw), 0,
				      memory_order_relaxed);
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

	shards_catch_up(&port->shards);
	shards_unsteer(&port->shards, qp->qpn);
	qp_destroy(port_engine(port), qp);
	port_release_raw(port);
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

int port_create_qp(struct port *port, struct engine *e, struct qp_init *init, struct qp **out)
{
	int err;

	pthread_mutex_lock(&port->numbers);
	if (init->transport == XROCE_RAW && !port_take_raw(port))
		err = -EOPNOTSUPP;
	else
		err = init->qpn == XROCE_CM_QPN ? port_make_qp1(port, e, init, out) :
						  port_make_other(port, e, init, out);
	if (err && init->transport == XROCE_RAW) {
		port_lock(port);
		port_release_raw(port);
		port_unlock(port);
	}
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
