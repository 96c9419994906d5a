/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Frames with MADs of the connection manager, for the tests of the broker's programs. */
#ifndef TESTS_BPF_MAD_FRAME_H
#define TESTS_BPF_MAD_FRAME_H

#include "../../user/cm/cm.h"
#include "frame.h"

/* From QP 1 to QP 1, with the CM's Q_Key and a MAD's payload; addresses are as bench_spec()'s. */
struct frame_spec mad_spec(void);
void mad_frame(struct frame *f, const struct frame_spec *spec, const struct cm_mad *m);

/* A REQ of that sender for that service. */
struct cm_mad mad_req(uint32_t local_id, uint64_t service_id);
/* A MAD of a connection, with both ids. */
struct cm_mad mad_of(enum cm_kind kind, uint32_t local_id, uint32_t remote_id);

#endif
