/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../cli.h"
#include "../json.h"
#include "lab_report.h"

static void say_packet(const struct lab_hit *h, FILE *out)
{
	char name[LAB_KIND_NAME];

	lab_kind_name(h->id.kind, name);
	fprintf(out, "xroce lab:     h%u>h%u %s qp %u (0x%x) psn 0x%x (+%u) round %u\n", h->from,
		h->to, name, h->id.order, h->id.qpn, h->id.psn, h->id.step, h->id.round);
}

static u32 rule_matched(const struct lab_rule *r)
{
	u32 sum = 0;

	for (u32 i = 1; i <= LAB_HOSTS; i++)
		for (u32 j = 1; j <= LAB_HOSTS; j++)
			sum += r->matched[i][j];
	return sum;
}

void lab_report_rules(const struct lab *lab, FILE *out)
{
	for (u32 i = 0; i < lab->cable->wire.num_rules; i++) {
		const struct lab_rule *r = &lab->cable->wire.rules[i];

		if (!r->text[0])
			continue;
		fprintf(out, "xroce lab: %s %u of %u: %s\n", r->hits ? "hit" : "NEVER HIT,",
			r->hits, rule_matched(r), r->text);
		for (u32 k = 0; k < r->num_shown; k++)
			say_packet(&r->shown[k], out);
		for (u32 k = 0; k < lab->shown->endpoint[i].num; k++)
			fprintf(out, "xroce lab:     h%u %s\n", lab->shown->endpoint[i].host[k],
				lab->shown->endpoint[i].text[k]);
	}
	for (u32 i = 0; i < lab->num_actions; i++)
		if (!lab->shown->has_acted[i])
			fprintf(out, "xroce lab: NEVER BEGAN, the programs ended before: %s\n",
				lab->actions[i].text);
}

u32 lab_report_hits(const struct lab *lab)
{
	u32 sum = 0;

	for (u32 i = 0; i < lab->cable->wire.num_rules; i++)
		sum += lab->cable->wire.rules[i].hits;
	for (u32 i = 0; i < lab->num_actions; i++)
		sum += lab->shown->has_acted[i];
	return sum;
}

bool lab_report_missed(const struct lab *lab)
{
	for (u32 i = 0; i < lab->cable->wire.num_rules; i++)
		if (!lab->cable->wire.rules[i].hits)
			return true;
	for (u32 i = 0; i < lab->num_actions; i++)
		if (!lab->shown->has_acted[i])
			return true;
	return false;
}

static void say_cable(const struct cable *c)
{
	if (c->too_long)
		fprintf(stderr,
			"xroce lab: %llu frames longer than the MTU were dropped: a host has "
			"switched its offloads on\n",
			(unsigned long long)c->too_long);
	if (c->lost_ring)
		fprintf(stderr,
			"xroce lab: %llu frames were dropped because the cable was too slow\n",
			(unsigned long long)c->lost_ring);
	if (c->lost_queue)
		fprintf(stderr, "xroce lab: %llu frames were dropped because a queue was full\n",
			(unsigned long long)c->lost_queue);
	if (c->capture_err)
		fprintf(stderr, "xroce lab: cannot write the capture: %s\n",
			strerror(-c->capture_err));
	if (c->wire.untold)
		fprintf(stderr, "xroce lab: %llu packets of more than %d QPs were not told apart\n",
			(unsigned long long)c->wire.untold, LAB_FLOWS);
}

static void write_json(const struct lab *lab, int status, FILE *out)
{
	const struct cable *c = lab->cable;
	struct json j;

	json_begin(&j, out);
	json_open_object(&j, NULL);
	json_signed(&j, "status", status);
	json_number(&j, "seed", c->wire.seed);
	json_number(&j, "packets", c->wire.packets);
	json_number(&j, "frames_forwarded", c->forwarded);
	json_number(&j, "frames_lost_by_the_cable", c->lost_ring + c->lost_queue + c->too_long);
	json_open_array(&j, "programs");
	for (u32 i = 0; i < lab->num_hosts; i++) {
		const struct lab_program *p = &lab->programs[i];

		if (!p->shell && !p->argv)
			continue;
		json_open_object(&j, NULL);
		json_number(&j, "host", i + 1);
		json_text(&j, "command", p->shell ? p->shell : p->argv[0]);
		json_signed(&j, "status", lab->shown->status[i]);
		json_boolean(&j, "ended_by_the_lab", lab->shown->was_ended[i]);
		json_close(&j);
	}
	json_close(&j);
	json_open_array(&j, "rules");
	for (u32 i = 0; i < c->wire.num_rules; i++) {
		const struct lab_rule *r = &c->wire.rules[i];

		json_open_object(&j, NULL);
		json_text(&j, "rule", r->text);
		json_number(&j, "matched", rule_matched(r));
		json_number(&j, "hits", r->hits);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
	json_end(&j);
}

int lab_report(const struct lab *lab, int status)
{
	FILE *out;

	lab_report_rules(lab, stderr);
	say_cable(lab->cable);
	if (lab_report_missed(lab) && !lab->may_miss && !status) {
		fprintf(stderr, "xroce lab: a rule never hit; --allow-miss permits that\n");
		status = EXIT_FAILED;
	}
	if (!lab->json)
		return status;
	out = fopen(lab->json, "we");
	if (out)
		write_json(lab, status, out);
	if (!out || ferror(out) | fclose(out)) {
		fprintf(stderr, "xroce lab: cannot write '%s': %s\n", lab->json, strerror(errno));
		return status ? status : EXIT_FAILED;
	}
	return status;
}
