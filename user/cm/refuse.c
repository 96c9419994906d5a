/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom a MAD is for, and the answers that need no connection. Keeps nothing. */
#include "internal.h"

enum cm_names cm_mad_names(const struct cm_mad *m, u32 *id, u64 *service_id)
{
	switch (m->kind) {
	case CM_REQ:
		*service_id = m->req.service_id;
		return CM_NAMES_SERVICE;
	case CM_SIDR_REQ:
		*service_id = m->sidr_req.service_id;
		return CM_NAMES_SERVICE;
	case CM_SIDR_REP:
		*id = m->local_id;
		return CM_NAMES_ID;
	case CM_REJ:
		/* an active side that gave up never learnt of our id */
		if (!m->remote_id)
			return CM_NAMES_PEER;
		*id = m->remote_id;
		return CM_NAMES_ID;
	default:
		*id = m->remote_id;
		return CM_NAMES_ID;
	}
}

struct cm_mad refusal_rej(const struct cm_mad *m, enum cm_reason reason)
{
	const enum cm_about about = m->kind == CM_REQ ? CM_ABOUT_REQ :
				    m->kind == CM_REP ? CM_ABOUT_REP :
							CM_ABOUT_OTHER;

	return (struct cm_mad){ .kind = CM_REJ,
				.tid = m->tid,
				.local_id = m->remote_id,
				.remote_id = m->local_id,
				.rej = { .about = about, .reason = reason } };
}

bool cm_refuse(const struct cm_mad *m, struct cm_mad *reply)
{
	*reply = (struct cm_mad){ .tid = m->tid,
				  .local_id = m->remote_id,
				  .remote_id = m->local_id };
	switch (m->kind) {
	case CM_REQ:
		*reply = refusal_rej(m, CM_REJ_INVALID_SERVICE_ID);
		return true;
	case CM_REP:
		*reply = refusal_rej(m, CM_REJ_INVALID_COMM_ID);
		return true;
	case CM_DREQ:
		reply->kind = CM_DREP;
		return true;
	case CM_LAP:
		reply->kind = CM_APR;
		reply->apr.status = CM_APR_INVALID_COMM_ID;
		return true;
	case CM_SIDR_REQ:
		*reply = (struct cm_mad){ .kind = CM_SIDR_REP,
					  .tid = m->tid,
					  .local_id = m->local_id,
					  .sidr_rep = { .service_id = m->sidr_req.service_id,
							.status = CM_SIDR_UNSUPPORTED } };
		return true;
	default:
		return false;
	}
}
