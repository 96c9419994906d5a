/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ibv_create_counters(3), ibv_attach_counters_point_flow(3), ibv_read_counters(3). A counters
 * object counts packets and bytes of all its flows, in XDP and in the engine. Its points map the
 * two counts to indices for reading. Points are attached before the flows are created; attaching to
 * an existing flow is ENOTSUP.
 */
#include <stdlib.h>

#include "objects.h"

/* A count read at an index, starting when the point was attached. */
struct counters_point {
	u32 index;
	enum ibv_counter_description what;
	u64 before;
};

struct vcounters {
	struct ibv_counters ibv;
	struct fork_entry forks;
	pthread_mutex_t lock; /* guards the fields below */
	struct counters_point *points;
	u32 num_points;
	u32 flows;		 /* flows that count here */
	struct raw_counter *raw; /* set by the first flow */
	struct port *port;	 /* the port of raw */
};

static struct vcounters *to_vcounters(struct ibv_counters *counters)
{
	return container_of(counters, struct vcounters, ibv);
}

static void counters_in_child(struct fork_entry *entry)
{
	pthread_mutex_init(&container_of(entry, struct vcounters, forks)->lock, NULL);
}

struct ibv_counters *create_counters_op(struct ibv_context *context,
					struct ibv_counters_init_attr *attr)
{
	struct vcounters *c;

	if (attr->comp_mask)
		return verb_fail(EOPNOTSUPP);
	if (context_gone(context))
		return verb_fail(EIO);
	c = calloc(1, sizeof(*c));
	if (!c)
		return verb_fail(ENOMEM);
	c->ibv.context = context;
	pthread_mutex_init(&c->lock, NULL);
	fork_add(&c->forks, counters_in_child);
	context_get(to_vcontext(context));
	return &c->ibv;
}

int destroy_counters_op(struct ibv_counters *counters)
{
	struct vcounters *c = to_vcounters(counters);
	u32 flows;

	pthread_mutex_lock(&c->lock);
	flows = c->flows;
	pthread_mutex_unlock(&c->lock);
	if (flows)
		return verb_report(EBUSY);
	fork_remove(&c->forks);
	if (c->raw)
		port_destroy_counter(c->port, c->raw);
	pthread_mutex_destroy(&c->lock);
	context_put(to_vcontext(c->ibv.context));
	free(c->points);
	free(c);
	return 0;
}

/* Caller holds the lock. Counts are 0 before the first flow. Returns 0 or a positive errno. */
static int counters_sum(const struct vcounters *c, struct xroce_flow_count *sum)
{
	*sum = (struct xroce_flow_count){ 0 };
	return c->raw ? -port_read_counter(c->port, c->raw, sum) : 0;
}

static u64 count_of(const struct xroce_flow_count *sum, enum ibv_counter_description what)
{
	return what == IBV_COUNTER_PACKETS ? sum->packets : sum->bytes;
}

/* Caller holds the lock. Returns 0 or a positive errno. */
static int counters_add_point(struct vcounters *c, u32 index, enum ibv_counter_description what)
{
	struct xroce_flow_count sum;
	struct counters_point *points;
	int err = counters_sum(c, &sum);

	if (err)
		return err;
	points = reallocarray(c->points, c->num_points + 1, sizeof(*points));
	if (!points)
		return ENOMEM;
	points[c->num_points++] = (struct counters_point){ index, what, count_of(&sum, what) };
	c->points = points;
	return 0;
}

int attach_counters_point_flow_op(struct ibv_counters *counters,
				  struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct vcounters *c = to_vcounters(counters);
	int err;

	if (attr->comp_mask)
		return verb_report(EINVAL);
	if (flow || (u32)attr->counter_desc > IBV_COUNTER_BYTES)
		return verb_report(ENOTSUP);
	pthread_mutex_lock(&c->lock);
	err = c->flows ? EBUSY : counters_add_point(c, attr->index, attr->counter_desc);
	pthread_mutex_unlock(&c->lock);
	return verb_report(err);
}

/* An index without a point reads as 0, one with several points as their sum. */
static void counters_fill(const struct vcounters *c, const struct xroce_flow_count *sum,
			  uint64_t *values, u32 num)
{
	memset(values, 0, num * sizeof(*values));
	for (u32 i = 0; i < c->num_points; i++) {
		const struct counters_point *p = &c->points[i];

		if (p->index < num)
			values[p->index] += count_of(sum, p->what) - p->before;
	}
}

/* Nothing is cached: PREFER_CACHED has no effect. */
int read_counters_op(struct ibv_counters *counters, uint64_t *values, uint32_t num, uint32_t flags)
{
	struct vcounters *c = to_vcounters(counters);
	struct xroce_flow_count sum;
	int err;

	if (flags & ~(u32)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return verb_report(EINVAL);
	pthread_mutex_lock(&c->lock);
	err = counters_sum(c, &sum);
	if (!err)
		counters_fill(c, &sum, values, num);
	pthread_mutex_unlock(&c->lock);
	return verb_report(err);
}

int counters_bind(struct ibv_counters *counters, struct vqp *vqp, struct vcounters **out,
		  struct raw_counter **raw)
{
	struct vcounters *c = to_vcounters(counters);
	int err = 0;

	if (!counters || counters->context != vqp->ibv.context)
		return EINVAL;
	pthread_mutex_lock(&c->lock);
	if (!c->num_points) {
		err = EINVAL;
	} else if (!c->raw) {
		c->port = vqp->port;
		err = limit_errno(port_create_counter(c->port, &c->raw));
	}
	c->flows += !err;
	*raw = c->raw;
	pthread_mutex_unlock(&c->lock);
	*out = err ? NULL : c;
	return err;
}

void counters_unbind(struct vcounters *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->flows--;
	pthread_mutex_unlock(&c->lock);
}
