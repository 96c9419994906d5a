/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "bench.h"
#include "mad_frame.h"

struct frame_spec mad_spec(void)
{
	struct frame_spec s = bench_spec();

	s.opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY);
	s.ecn_qpn = XROCE_CM_QPN;
	s.ext_len = 8;
	frame_put32(s.ext, XROCE_CM_QKEY);
	frame_put32(s.ext + 4, XROCE_CM_QPN);
	s.payload_len = CM_MAD_BYTES;
	return s;
}

void mad_frame(struct frame *f, const struct frame_spec *s, const struct cm_mad *m)
{
	frame_build(f, s);
	cm_mad_encode(f->bytes + f->payload, m);
}

struct cm_mad mad_req(uint32_t local_id, uint64_t service_id)
{
	return (struct cm_mad){ .kind = CM_REQ,
				.tid = 0x1122334455667788,
				.local_id = local_id,
				.req = { .service_id = service_id } };
}

struct cm_mad mad_of(enum cm_kind kind, uint32_t local_id, uint32_t remote_id)
{
	return (struct cm_mad){ .kind = kind,
				.tid = 0x99,
				.local_id = local_id,
				.remote_id = remote_id };
}
