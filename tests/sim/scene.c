/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pair and its buffers; see scene.h. */
#include "scene.h"

struct scene scene_in(struct world *w, const struct pair_options *o, u32 bytes)
{
	struct pair p = pair_connect(w, o);

	return (struct scene){
		.w = w,
		.o = *o,
		.a = { p.side[0] },
		.b = { p.side[1] },
		.local = world_buffer(&w->node[0], bytes, PAIR_ACCESS_ALL),
		.remote = world_buffer(&w->node[1], bytes, PAIR_ACCESS_ALL),
		.path = world_path(w, 0, 1, o->is_ipv6),
	};
}

void scene_end(struct scene *s)
{
	side_destroy(s->a);
	side_destroy(s->b);
	world_destroy(s->w);
}

struct send scene_request(const struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len)
{
	return request_between(s->local, s->remote, wr_id, opcode, len);
}

void scene_post(struct scene *s, u64 wr_id, enum wr_opcode opcode, u32 len)
{
	struct send send = scene_request(s, wr_id, opcode, len);

	post_send(s->a, &send);
}
