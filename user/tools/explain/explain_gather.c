/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "explain_gather.h"
#include "../memory.h"
#include "../observe/observe_options.h"

/* ---- the process ---- */

static char task_state(const char *path)
{
	char line[512], *at;
	FILE *f = fopen(path, "re");
	const bool is_read = f && fgets(line, sizeof(line), f);

	if (f)
		fclose(f);
	/* the state follows the process name, which may contain any character */
	at = is_read ? strrchr(line, ')') : NULL;
	return at && at[1] == ' ' ? at[2] : 0;
}

static void task_times(const char *path, u64 *ran, u64 *waited)
{
	unsigned long long a, b;
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%llu %llu", &a, &b) == 2) {
		*ran += a;
		*waited += b;
	}
	if (f)
		fclose(f);
}

static void process_look(u32 pid, struct explain_process *p)
{
	char path[300];
	struct dirent *task;
	DIR *tasks;

	*p = (struct explain_process){ 0 };
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = pid ? opendir(path) : NULL;
	while (tasks && (task = readdir(tasks))) {
		char state;

		if (*task->d_name < '0' || *task->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%u/task/%.20s/stat", pid, task->d_name);
		state = task_state(path);
		p->threads += state != 0;
		p->stopped += state == 'T' || state == 't';
		p->ready += state == 'R';
		snprintf(path, sizeof(path), "/proc/%u/task/%.20s/schedstat", pid, task->d_name);
		task_times(path, &p->ran_ns, &p->waited_ns);
	}
	if (tasks)
		closedir(tasks);
	p->is_known = p->threads;
}

/* ---- the network namespace ---- */

/* Returns the number under name, from a line of names and a line of numbers ("Icmp: ..."). */
static u64 icmp_number(char *names, char *numbers, const char *name)
{
	char *of_names, *of_numbers;
	const char *a = strtok_r(names, " \n", &of_names), *b = strtok_r(numbers,
									 " \n",
									 &of_numbers);

	for (; a && b; a = strtok_r(NULL, " \n", &of_names), b = strtok_r(NULL, " \n", &of_numbers))
		if (!strcmp(a, name))
			return strtoull(b, NULL, 10);
	return 0;
}

static u64 icmp_unreachable(void)
{
	char before[2048] = "", line[2048];
	unsigned long long n6 = 0;
	u64 n = 0;
	FILE *f = fopen("/proc/thread-self/net/snmp", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "Icmp:", 5) && !strncmp(before, "Icmp:", 5))
			n = icmp_number(before, line, "InDestUnreachs");
		memcpy(before, line, sizeof(before));
	}
	if (f)
		fclose(f);
	f = fopen("/proc/thread-self/net/snmp6", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Icmp6InDestUnreachs %llu", &n6) == 1)
			break;
	if (f)
		fclose(f);
	return n + n6;
}

/* ---- a port ---- */

static void port_look(const struct observed *p, const struct snapshot *s, struct explain_port *port)
{
	struct netdev dev;

	*port = (struct explain_port){ .prog_id = p->prog_id,
				       .pid = p->pid,
				       .by_sockets = p->num_maps && p->maps->memory,
				       .queues = s->queues,
				       .wakeups = s->wakeups,
				       .unannounced = s->unannounced,
				       .sums = s->sums };
	snprintf(port->command, sizeof(port->command), "%s", p->command);
	snprintf(port->dev, sizeof(port->dev), "%s", p->iface->name);
	port->refused = p->sent.refused;
	port->has_iface = *p->iface->name && !netdev_find(p->iface->name, &dev);
	if (port->has_iface) {
		port->is_enabled = dev.is_enabled;
		port->is_up = dev.is_up;
		port->mtu = dev.mtu;
		port->unreachable = icmp_unreachable();
	}
	process_look(p->pid, &port->process);
	port->time_ns = clock_now_ns();
}

/* ---- the port's queue pairs ---- */

/* Returns whether the port has that CQ; sets *found. */
static bool find_cq(const struct snapshot *s, u32 number, struct xroce_cq_stat *found)
{
	for (u32 i = 0; i < s->lists[SNAPSHOT_CQ].num; i++) {
		const struct xroce_cq_stat *cq = snapshot_object(s, SNAPSHOT_CQ, i);

		if (cq && cq->cq == number) {
			*found = *cq;
			return true;
		}
	}
	return false;
}

static bool find_srq(const struct snapshot *s, u32 number, struct xroce_srq_stat *found)
{
	for (u32 i = 0; number && i < s->lists[SNAPSHOT_SRQ].num; i++) {
		const struct xroce_srq_stat *srq = snapshot_object(s, SNAPSHOT_SRQ, i);

		if (srq && srq->srq == number) {
			*found = *srq;
			return true;
		}
	}
	return false;
}

static void port_qps(const struct snapshot *s, struct gathered_port *g)
{
	g->qps = calloc(s->num_qps ? s->num_qps : 1, sizeof(*g->qps));
	g->num_qps = g->qps ? s->num_qps : 0;
	for (u32 i = 0; i < g->num_qps; i++) {
		const struct qp_view *v = &s->qps[i];
		struct explain_qp *q = &g->qps[i];

		q->qpn = v->qpn;
		q->has_stat = v->has_stat;
		q->has_steer = v->has_steer;
		q->stat = v->stat;
		q->steer = v->steer;
		if (!q->has_stat)
			continue;
		if (q->stat.path_mtu && q->stat.path_mtu <= 4096)
			q->link_mtu = netdev_link_mtu_for(q->stat.path_mtu);
		q->has_send_cq = find_cq(s, q->stat.send_cq, &q->send_cq);
		q->has_recv_cq = find_cq(s, q->stat.recv_cq, &q->recv_cq);
		q->has_srq = find_srq(s, q->stat.srq, &q->srq);
	}
}

static void gather_port(void *arg, const struct observed *p, const struct snapshot *s)
{
	struct gathered *g = arg;

	if (p->kind == OBSERVED_BROKER)
		return;
	g->list = memory_grow(g->list, g->num, &g->room, sizeof(*g->list));
	g->list[g->num] = (struct gathered_port){ 0 };
	port_look(p, s, &g->list[g->num].port);
	port_qps(s, &g->list[g->num]);
	g->num++;
}

static bool gather_has(void *arg, u32 prog_id)
{
	return gathered_find(arg, prog_id);
}

/* ---- all processes ---- */

void gather(struct observe_options *l, struct gathered *g)
{
	const u32 parts = SNAPSHOT_COUNTERS | SNAPSHOT_WAKEUPS | SNAPSHOT_QPS | SNAPSHOT_CQS |
			  SNAPSHOT_SRQS;

	*g = (struct gathered){ 0 };
	observe_options_each(l, parts, gather_port, g);
	/* brokers hide other users' processes, so only the program list is complete */
	g->is_whole = observe_foreign(gather_has, parts, gather_port, g) && !l->is_hidden;
}

void gathered_end(struct gathered *g)
{
	for (u32 i = 0; i < g->num; i++)
		free(g->list[i].qps);
	free(g->list);
	*g = (struct gathered){ 0 };
}

const struct gathered_port *gathered_find(const struct gathered *g, u32 prog_id)
{
	for (u32 i = 0; i < g->num; i++)
		if (g->list[i].port.prog_id == prog_id)
			return &g->list[i];
	return NULL;
}

const struct explain_qp *gathered_qp(const struct gathered_port *p, u32 qpn)
{
	for (u32 i = 0; p && i < p->num_qps; i++)
		if (p->qps[i].qpn == qpn)
			return &p->qps[i];
	return NULL;
}

static bool stats_are_ends(const struct xroce_qp_stat *a, const struct xroce_qp_stat *b)
{
	return a->peer_qpn == b->qpn && b->peer_qpn == a->qpn && a->transport == b->transport &&
	       !memcmp(a->peer, b->local, sizeof(a->peer)) &&
	       !memcmp(a->local, b->peer, sizeof(a->local));
}

const struct explain_qp *gathered_peer(const struct gathered *g, const struct explain_qp *q,
				       const struct gathered_port **port)
{
	if (!q->has_stat || q->stat.transport == XROCE_UD || q->stat.state < XROCE_QPS_RTR)
		return NULL;
	for (u32 i = 0; i < g->num; i++) {
		const struct explain_qp *other = gathered_qp(&g->list[i], q->stat.peer_qpn);

		if (other && other->has_stat && stats_are_ends(&q->stat, &other->stat)) {
			*port = &g->list[i];
			return other;
		}
	}
	return NULL;
}
