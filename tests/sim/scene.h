/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The scene that most tests of one connection are played in: two nodes, a pair of QPs between them,
 * and a buffer at each end. The world it is in, with its seed and label, and all that happens are
 * the test's.
 */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "pair.h"

struct scene {
	struct world *w;
	struct pair_options o;		/* as both were connected */
	/* the requester or sender, on node 0; the responder or receiver, on node 1 */
	struct side a[1], b[1];
	struct buffer *local, *remote;	/* of a and of b, with all rights */
	struct path path;		/* from a to b */
};

/* Connects a and b in w, with a buffer of `bytes` bytes each. */
struct scene scene_in(struct world *w, const struct pair_options *o, u32 bytes);
/* Destroys both QPs, their CQs and the world. */
void scene_end(struct scene *s);

/*
 * A signaled request of a's for len bytes, from the start of local to the start of remote or back;
 * and the same, posted.
 */
struct send scene_request(const struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len);
void scene_post(struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len);

#endif
