/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "internal.h"
#include "note.h"

void engine_set_notes(struct engine *e, struct engine_notes *notes)
{
	e->notes = notes;
}

rare void note_add(struct engine *e, const struct qp *qp, enum xroce_event event, u32 value,
		   u32 more)
{
	struct engine_notes *n = e->notes;

	if (n->num == ENGINE_NOTES) {
		n->lost++;
		return;
	}
	n->note[n->num++] = (struct engine_note){ .qpn = qp->qpn,
						  .peer_qpn = qp->dest_qpn,
						  .event = event,
						  .value = value,
						  .more = more };
}

rare void note_output(struct engine *e, const struct qp *qp)
{
	e->notes->output_qpn = qp->qpn;
	e->notes->output_peer_qpn = qp->dest_qpn;
}
