/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include <xroce/stat.h>

#include "../observe/observe_options.h"
#include "../counters.h"
#include "top_gather.h"

struct gather {
	struct observe_options *look;
	struct top_model *model;
};

/* Names are foreign input: only printable ASCII is kept. */
static void gather_name(char *to, size_t size, const char *name)
{
	size_t i;

	for (i = 0; i + 1 < size && name[i]; i++)
		to[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	to[i] = 0;
}

/* Returns a process's key, which stays when a broker gives the process another program. */
static u64 gather_owner(const struct observed *p)
{
	return p->pid ? p->pid : 1ull << 32 | p->prog_id;
}

static struct top_sample *gather_add(struct gather *g, enum top_view view,
				     const struct observed *p)
{
	struct top_sample *s = top_model_add(g->model, view);

	if (!s)
		return NULL;
	s->ifindex = p->iface->ifindex;
	s->owner = gather_owner(p);
	s->pid = p->pid;
	gather_name(s->dev, sizeof(s->dev), p->iface->name);
	gather_name(s->command, sizeof(s->command), p->command);
	return s;
}

static void gather_process(struct gather *g, const struct observed *p)
{
	struct top_sample *s = gather_add(g, TOP_PROCESSES, p);
	struct sums sums;

	if (!s)
		return;
	observed_sums(p, &sums);
	s->counters[TOP_RX_BYTES] = sums.rx.redirected_bytes;
	s->counters[TOP_TX_BYTES] = sums.engine.tx_bytes;
	s->counters[TOP_RX_PACKETS] = sums.engine.rx_packets;
	s->counters[TOP_TX_PACKETS] = sums.engine.tx_packets;
	s->counters[TOP_RETRANSMITTED] = sums.engine.tx_retransmitted;
	s->counters[TOP_RNR] = sums.engine.rx_rnr_naks;
	s->counters[TOP_DROPPED] = counters_dropped(&sums);
	s->counters[TOP_LOST] = counters_lost(&sums);
}

static void gather_qp(struct gather *g, const struct observed *p, const struct qp_view *v)
{
	struct top_sample *s = gather_add(g, TOP_QPS, p);
	const struct xroce_qp_stat *stat = &v->stat;
	const struct xroce_qp *steer = &v->steer;
	char text[46];

	if (!s)
		return;
	s->number = v->qpn;
	s->pid = p->pid ? p->pid : v->has_stat ? stat->pid : steer->pid;
	s->made_ns = stat->made_ns;
	s->type = observe_options_transport(v->has_stat ? stat->transport : steer->transport);
	snprintf(s->peer, sizeof(s->peer), "%s",
		 observe_options_gid(v->has_stat ? stat->peer : steer->peer, text));
	s->state = v->has_stat ? observe_options_state(stat->state) : "";
	s->is_bad = v->has_stat && stat->state == XROCE_QPS_ERR;
	/* an older library has only XDP's counters */
	s->counters[TOP_RX_BYTES] = v->has_stat ? stat->rx_bytes : steer->rx_bytes;
	s->counters[TOP_RX_PACKETS] = v->has_stat ? stat->rx_packets : steer->rx_packets;
	s->counters[TOP_TX_BYTES] = stat->tx_bytes;
	s->counters[TOP_TX_PACKETS] = stat->tx_packets;
	s->counters[TOP_RETRANSMITTED] = stat->tx_retransmitted;
	s->counters[TOP_RNR] = stat->rx_rnr_naks;
	s->counters[TOP_DROPPED] = stat->rx_dropped + steer->rx_dropped;
	s->gauges[TOP_OUTSTANDING] = stat->outstanding;
	s->gauges[TOP_RTT_NS] = stat->rtt_ns;
}

static void gather_cq(void *arg, const struct observed *p, const void *key, const void *value)
{
	const struct xroce_cq_stat *stat = value;
	struct gather *g = arg;
	struct top_sample *s = stat->pid ? gather_add(g, TOP_CQS, p) : NULL;

	if (!s)
		return;
	s->number = stat->cq;
	s->pid = p->pid ? p->pid : stat->pid;
	s->is_bad = stat->overruns;
	s->counters[TOP_COMPLETIONS] = stat->completions;
	s->counters[TOP_EVENTS] = stat->events;
	s->counters[TOP_OVERRUNS] = stat->overruns;
	s->gauges[TOP_WAITING] = stat->waiting;
	s->gauges[TOP_MOST_WAITING] = stat->most_waiting;
	s->gauges[TOP_ENTRIES] = stat->entries;
}

/* With a QP filter, skips processes without a matching QP. */
static void gather_port(void *arg, const struct observed *p)
{
	struct gather *g = arg;
	const struct observe_options *l = g->look;
	u32 n;
	struct qp_view *v = observed_qps(l, p, &n, NULL);

	if (n || !(l->has_qpn || l->has_peer || l->has_state)) {
		for (u32 i = 0; i < n; i++)
			gather_qp(g, p, &v[i]);
		observed_each(p, XROCE_MAP_CQ_STAT, sizeof(struct xroce_cq_stat), gather_cq, g);
		gather_process(g, p);
	}
	free(v);
}

static void gather_interfaces(struct gather *g)
{
	const struct observer *o = &g->look->observer;

	for (u32 i = 0; i < o->num_ifaces; i++) {
		struct top_sample *s = top_model_add(g->model, TOP_INTERFACES);

		if (!s)
			return;
		s->ifindex = o->ifaces[i].ifindex;
		gather_name(s->dev, sizeof(s->dev), o->ifaces[i].name);
		/* a silent broker's processes still exist */
		if (o->ifaces[i].is_silent)
			top_model_keep(g->model, s->ifindex);
	}
}

int top_gather(struct observe_options *l, struct top_model *m)
{
	struct gather g = { l, m };
	const int err = observe_options_list(l);

	if (err)
		return err;
	observe_options_ports(l, gather_port, &g);
	gather_interfaces(&g);
	return top_model_round(m, l->time_ns);
}
