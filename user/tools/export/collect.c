/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <signal.h>
#include <stdlib.h>

#include "../../os/clock.h"
#include "collect.h"

#define COLLECT_ASK_NS	(2 * NSEC_PER_SEC) /* longest wait for a broker's answer */
#define COLLECT_SILENT_NS (60 * NSEC_PER_SEC) /* after that, pause before the next question */
#define TOMB_NS		(60 * NSEC_PER_SEC)
#define TOMBS		1024u

#define STAT_AS(name, unit, field) \
	{ name, unit, NULL, offsetof(struct qp_view, stat.field), \
	  offsetof(struct sums, engine.field) }
#define STAT(field) STAT_AS(#field, NULL, field)
#define OWN(name, unit, field, text) { name, unit, text, offsetof(struct qp_view, field), 0 }

/* The first two are the measure of activity. */
const struct qp_field qp_fields[] = {
	STAT_AS("tx", "packets", tx_packets),
	STAT_AS("rx", "packets", rx_packets),
	STAT_AS("tx", "bytes", tx_bytes),
	OWN("rx", "bytes", stat.rx_bytes, "bytes of whole frames received"),
	STAT_AS("tx_retransmitted", "packets", tx_retransmitted),
	STAT_AS("tx_retransmitted", "bytes", tx_retransmitted_bytes),
	STAT(timeouts),
	STAT(rto_probes),
	STAT(rto_spurious),
	STAT(tx_sequence_naks),
	STAT(rx_sequence_naks),
	STAT(implied_naks),
	STAT(tx_rnr_naks),
	STAT(rx_rnr_naks),
	STAT(remote_errors),
	STAT(duplicate_requests),
	OWN("rx_dropped", "packets", stat.rx_dropped, "packets that the engine dropped"),
	OWN("xdp_dropped", "packets", steer.rx_dropped, "frames that XDP dropped"),
	OWN("icrc_errors", NULL, stat.icrc_errors, "packets with a wrong ICRC"),
	STAT(rx_ce),
	STAT(tx_cnps),
	STAT(rx_cnps),
	STAT(credit_waits),
	STAT(flow_waits),
	STAT(rx_writes),
	STAT(rx_reads),
	STAT(rx_atomics),
	OWN("wakeups", NULL, steer.wakeups, "wake-ups of completion queues"),
};
const u32 qp_num_fields = ARRAY_SIZE(qp_fields);

void collector_begin(struct collector *c, const char *dev, u32 most_processes, u32 most_qps)
{
	*c = (struct collector){ .dev = dev };
	shares_begin(&c->processes, COUNT_WORDS, most_processes);
	shares_begin(&c->qps, qp_num_fields, most_qps);
}

static void collector_drop(struct collector *c, u32 i)
{
	watched_close(c->ports[i]);
	free(c->ports[i]);
	c->ports[i] = c->ports[--c->num_ports];
}

void collector_end(struct collector *c)
{
	while (c->num_ports)
		collector_drop(c, c->num_ports - 1);
	free(c->ports);
	free(c->devices);
	free(c->tombs);
	free(c->qp_rows);
	shares_end(&c->processes);
	shares_end(&c->qps);
}

/* ---- interfaces ---- */

struct device *collector_device(const struct collector *c, u32 ifindex)
{
	for (u32 i = 0; i < c->num_devices; i++)
		if (c->devices[i].ifindex == ifindex)
			return &c->devices[i];
	return NULL;
}

static void collector_take_iface(struct collector *c, const struct observed_iface *iface)
{
	struct device *d = collector_device(c, iface->ifindex), *all;

	if (!d) {
		all = reallocarray(c->devices, c->num_devices + 1, sizeof(*all));
		if (!all) {
			c->errors[COLLECT_MEMORY]++;
			return;
		}
		c->devices = all;
		d = &all[c->num_devices++];
		*d = (struct device){ .ifindex = iface->ifindex, .is_shown = c->dev };
	}
	memcpy(d->name, iface->name, sizeof(d->name));
	d->mtu = iface->mtu;
	d->is_up = iface->is_up;
	d->is_listed = true;
	d->is_shared = iface->broker_prog_id || iface->asks;
	d->is_hidden = iface->is_hidden || iface->is_partial;
	d->is_lost = iface->is_left;
	d->is_whole = !iface->is_hidden && !iface->is_silent &&
		      !(iface->broker_prog_id && !iface->asks);
	d->silent_until_ns = iface->silent_until_ns;
	d->is_shown |= d->is_hidden || d->is_lost;
	if (!d->is_whole && !iface->is_hidden)
		c->errors[COLLECT_BROKER]++;
}

/* Removes interfaces that no longer exist, with their ports and shares. */
static void collector_drop_devices(struct collector *c)
{
	for (u32 i = 0; i < c->num_devices;) {
		const u32 ifindex = c->devices[i].ifindex;

		if (c->devices[i].is_listed) {
			i++;
			continue;
		}
		for (u32 k = 0; k < c->num_ports;) {
			if (c->ports[k]->ifindex == ifindex)
				collector_drop(c, k);
			else
				k++;
		}
		shares_forget(&c->processes, ifindex);
		shares_forget(&c->qps, ifindex);
		memmove(&c->devices[i], &c->devices[i + 1],
			(--c->num_devices - i) * sizeof(*c->devices));
	}
}

/* ---- ports ---- */

static struct watched *collector_find(const struct collector *c, u32 ifindex, u32 prog_id)
{
	for (u32 i = 0; i < c->num_ports; i++)
		if (c->ports[i]->ifindex == ifindex && c->ports[i]->port.prog_id == prog_id)
			return c->ports[i];
	return NULL;
}

static struct watched *collector_find_id(const struct collector *c, u32 id)
{
	for (u32 i = 0; id && i < c->num_ports; i++)
		if (watched_mark_id(&c->ports[i]->mark) == id)
			return c->ports[i];
	return NULL;
}

/* Adds a port, with the mark of the same engine if it was seen before. */
static struct watched *collector_add(struct collector *c, u32 id)
{
	struct watched **ports, *w;

	if (c->num_ports == c->room_ports) {
		const u32 room = c->room_ports ? 2 * c->room_ports : 16;

		ports = reallocarray(c->ports, room, sizeof(struct watched *));
		if (!ports)
			return NULL;
		c->ports = ports;
		c->room_ports = room;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	for (u32 i = 0; id && i < c->num_tombs; i++) {
		const struct watched_mark *m = &c->tombs[i].mark;

		if (watched_mark_id(m) != id)
			continue;
		watched_come_back(w, m);
		c->tombs[i] = c->tombs[--c->num_tombs];
		break;
	}
	c->ports[c->num_ports++] = w;
	return w;
}

static void collector_read(struct collector *c, struct watched *w, struct device *d)
{
	if (watched_read(w, &d->total))
		c->errors[COLLECT_MEMORY]++;
}

/* Takes an open port whose program is unknown: a new port, or a known one with a new program. */
static void collector_take_port(struct collector *c, struct device *d, struct observed *p)
{
	const u32 id = watched_id_of(p);
	struct watched *w = collector_find_id(c, id);

	if (w)
		/* the last values in maps that the port is about to replace */
		collector_read(c, w, d);
	else
		w = collector_add(c, id);
	if (!w) {
		c->errors[COLLECT_MEMORY]++;
		observed_close(p);
		return;
	}
	if (watched_take(w, p)) {
		c->errors[COLLECT_MAPS]++;
		w->is_listed = false;
		return;
	}
	watched_describe(w, p);
}

static void collector_list_port(struct collector *c, struct observed *p)
{
	struct device *d = collector_device(c, p->iface->ifindex);
	struct watched *w = collector_find(c, p->iface->ifindex, p->prog_id);
	int err;

	if (!d)
		return;
	d->is_shown = true;
	d->is_silent |= p->kind == OBSERVED_SILENT;
	d->ports += p->kind != OBSERVED_BROKER;
	if (w) {
		watched_describe(w, p);
		return;
	}
	err = observed_open(p);
	if (!err) {
		collector_take_port(c, d, p);
		return;
	}
	observed_close(p);
	if (err == -EPERM || err == -EACCES)
		d->is_hidden = true;
	else if (err != -ENOENT)
		c->errors[err == -ENOMEM ? COLLECT_MEMORY : COLLECT_MAPS]++;
}

/*
 * Returns whether the port has ended. If the interface could not be listed completely, the port
 * counts as alive while its process exists.
 */
static bool collector_has_ended(const struct device *d, const struct watched *w)
{
	if (w->is_listed)
		return false;
	if (!d || d->is_whole || !w->port.pid)
		return true;
	return kill((pid_t)w->port.pid, 0) && errno == ESRCH;
}

static void collector_bury(struct collector *c, const struct watched *w, u64 now_ns)
{
	struct tomb *tombs;
	u32 at = 0;

	if (!watched_mark_id(&w->mark))
		return;
	if (c->num_tombs < TOMBS) {
		tombs = reallocarray(c->tombs, c->num_tombs + 1, sizeof(*tombs));
		if (!tombs) {
			c->errors[COLLECT_MEMORY]++;
			return;
		}
		c->tombs = tombs;
		at = c->num_tombs++;
	} else {
		for (u32 i = 1; i < c->num_tombs; i++)
			if (c->tombs[i].died_ns < c->tombs[at].died_ns)
				at = i;
	}
	c->tombs[at] = (struct tomb){ w->mark, w->ifindex, now_ns };
}

static void collector_read_ports(struct collector *c, u64 now_ns)
{
	for (u32 i = 0; i < c->num_ports;) {
		struct watched *w = c->ports[i];
		struct device *d = collector_device(c, w->ifindex);

		if (d)
			collector_read(c, w, d);
		if (collector_has_ended(d, w)) {
			collector_bury(c, w, now_ns);
			collector_drop(c, i);
			continue;
		}
		if (d)
			objects_now_add(&d->objects, &w->objects);
		i++;
	}
	for (u32 i = 0; i < c->num_tombs;) {
		if (now_ns - c->tombs[i].died_ns > TOMB_NS)
			c->tombs[i] = c->tombs[--c->num_tombs];
		else
			i++;
	}
}

/* ---- shares ---- */

static int collector_share_qp(struct collector *c, const struct share_key *process, u32 port,
			      u32 nth, u64 *values)
{
	const struct qp_view *v = &c->ports[port]->qps[nth];
	struct share_key key = *process;
	struct qp_row *rows;

	if (c->num_qp_rows == c->room_qp_rows) {
		const u32 room = c->room_qp_rows ? 2 * c->room_qp_rows : 64;

		rows = reallocarray(c->qp_rows, room, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		c->qp_rows = rows;
		c->room_qp_rows = room;
	}
	key.qpn = v->qpn;
	for (u32 i = 0; i < qp_num_fields; i++)
		values[i] = *(const u64 *)((const u8 *)v + qp_fields[i].offset);
	/* an older library has no engine counters, so XDP's are used */
	c->qp_rows[c->num_qp_rows] = (struct qp_row){ port, nth };
	return shares_put(&c->qps, &key, c->num_qp_rows++, values,
			  v->has_stat ? counter_plus(values[0], values[1]) : v->steer.rx_packets);
}

static void collector_share(struct collector *c, double seconds)
{
	u64 *values = calloc(qp_num_fields, sizeof(*values));
	int err = values ? 0 : -ENOMEM;

	shares_round(&c->processes);
	shares_round(&c->qps);
	c->num_qp_rows = 0;
	for (u32 i = 0; !err && i < c->num_ports; i++) {
		const struct watched *w = c->ports[i];
		struct share_key key = { .ifindex = w->ifindex, .pid = w->port.pid };

		memcpy(key.command, w->command, sizeof(key.command));
		err = shares_put(&c->processes, &key, i, (const u64 *)&w->now,
				 counter_plus(w->now.sums.engine.rx_packets,
					      w->now.sums.engine.tx_packets));
		for (u32 k = 0; !err && k < w->num_qps; k++)
			err = collector_share_qp(c, &key, i, k, values);
	}
	/* shares already put are completed even after a failure */
	if (shares_settle(&c->processes, seconds) || shares_settle(&c->qps, seconds))
		err = -ENOMEM;
	if (err)
		c->errors[COLLECT_MEMORY]++;
	free(values);
}

/* ---- collection ---- */

static void device_name_counters(struct device *d)
{
	for (u32 i = 0; i < counters_num_names && i < COLLECT_NAMES; i++) {
		const u64 value = counters_value(&d->total.sums, &counters_names[i]);

		/* the terms of a difference are read one after the other, so the value may fall */
		if (value > d->names[i])
			d->names[i] = value;
	}
}

static int collector_observe(struct collector *c)
{
	struct observer o;
	int err = observer_begin(&o, c->dev);

	if (err) {
		/* a missing interface may return, so this is no error */
		if (err != -ENODEV)
			c->errors[COLLECT_INTERFACES]++;
		return err == -ENODEV ? 0 : err;
	}
	o.ask_ns = COLLECT_ASK_NS;
	o.silent_ns = COLLECT_SILENT_NS;
	for (u32 i = 0; i < o.num_ifaces; i++) {
		const struct device *d = collector_device(c, o.ifaces[i].ifindex);

		o.ifaces[i].silent_until_ns = d ? d->silent_until_ns : 0;
	}
	observer_list(&o);
	for (u32 i = 0; i < o.num_ifaces; i++)
		collector_take_iface(c, &o.ifaces[i]);
	for (u32 i = 0; i < o.num; i++)
		collector_list_port(c, &o.ports[i]);
	observer_end(&o);
	return 0;
}

void collector_collect(struct collector *c)
{
	const u64 begun_ns = clock_now_ns(), before_ns = c->at_ns ? c->at_ns : begun_ns;

	for (u32 i = 0; i < c->num_devices; i++) {
		struct device *d = &c->devices[i];

		d->is_listed = d->is_silent = false;
		d->ports = 0;
		memset(&d->objects, 0, sizeof(d->objects));
	}
	for (u32 i = 0; i < c->num_ports; i++)
		c->ports[i]->is_listed = false;
	c->is_up = !collector_observe(c);
	/* after a failed listing all devices are kept */
	for (u32 i = 0; !c->is_up && i < c->num_devices; i++)
		c->devices[i].is_listed = true, c->devices[i].is_whole = false;
	collector_drop_devices(c);
	collector_read_ports(c, begun_ns);
	for (u32 i = 0; i < c->num_devices; i++)
		device_name_counters(&c->devices[i]);
	collector_share(c, (double)(begun_ns - before_ns) / 1e9);
	c->collects++;
	c->at_ns = begun_ns;
	c->took_ns = clock_now_ns() - begun_ns;
}
