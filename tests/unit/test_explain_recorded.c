/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The rules of `xroce explain` on recorded faults: both looks at processes whose fault
 * tests/netns/explain.sh makes. A record has all fields that the rules read.
 */
#include "unit.h"

#include "../../user/tools/explain/explain_rule.h"

struct recorded {
	const char *name;
	const char *found; /* "broken ID, (ID)": without notes; consequences in brackets */
	const char *note;  /* ID of a note that is found too, or NULL */
	const char *words; /* part of the text or guess of the first finding, or NULL */
	const char *number; /* a number of the first finding, or NULL */
	u64 least;	    /* lower bound of that number */
	double seconds;	    /* between both looks */
	bool has_peer, is_peer_gone;
	struct explain_port port[2], peer_port[2];
	struct explain_qp qp[2], peer[2];
};

static const struct recorded records[] = {
#include "recorded/explain_healthy.h"
#include "recorded/explain_refused.h"
#include "recorded/explain_peer.h"
#include "recorded/explain_path.h"
#include "recorded/explain_packets.h"
};

static void recorded_judge(const struct recorded *r, struct findings *f)
{
	struct explain_case c = { .own = { .port = { &r->port[0], &r->port[1] } },
				  .seconds = r->seconds };

	findings_begin(f);
	explain_look(&c, f);
	c.own.qp[0] = &r->qp[0];
	c.own.qp[1] = &r->qp[1];
	c.has_peer = r->has_peer;
	c.is_peer_gone = r->is_peer_gone;
	c.peer = (struct explain_end){ .port = { &r->peer_port[0], &r->peer_port[1] },
				       .qp = { &r->peer[0], &r->peer[1] } };
	explain_look(&c, f);
	explain_sort(f);
}

/* Writes all findings but notes into `text`, as recorded.found has them. */
static void findings_text(const struct findings *f, char *text, size_t room)
{
	*text = 0;
	for (u32 i = 0; i < f->num; i++) {
		const struct finding *one = &f->list[i];
		const size_t used = strlen(text);

		if (one->severity == EXPLAIN_NOTE)
			continue;
		snprintf(text + used, room - used, "%s%s%s%s", used ? ", " : "",
			 one->is_consequence		    ? "("
			 : one->severity == EXPLAIN_BROKEN ? "broken "
							    : "slow ",
			 one->id, one->is_consequence ? ")" : "");
	}
}

static bool findings_have(const struct findings *f, const char *id)
{
	for (u32 i = 0; i < f->num; i++)
		if (!strcmp(f->list[i].id, id))
			return true;
	return false;
}

static void need_number(const struct finding *f, const char *name, u64 least)
{
	for (u32 i = 0; i < f->num_numbers; i++)
		if (!strcmp(f->number[i].name, name)) {
			assert_true(f->number[i].value >= least);
			return;
		}
	fail_msg("%s has no number %s", f->id, name);
}

/* *state: the record */
static void explain__as_recorded(void **state)
{
	const struct recorded *r = *state;
	struct findings f;
	char text[512];

	recorded_judge(r, &f);
	findings_text(&f, text, sizeof(text));
	assert_string_equal(text, r->found);
	for (u32 i = 0; i < f.num; i++) {
		assert_true(*f.list[i].text);
		if (f.list[i].severity == EXPLAIN_NOTE)
			continue;
		assert_true(*f.list[i].advice);
		assert_true(f.list[i].num_numbers);
	}
	if (r->note)
		assert_true(findings_have(&f, r->note));
	if (r->words && !strstr(f.list[0].text, r->words) && !strstr(f.list[0].guess, r->words))
		fail_msg("no '%s' in: %s %s", r->words, f.list[0].text, f.list[0].guess);
	if (r->number)
		need_number(&f.list[0], r->number, r->least);
	findings_end(&f);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(records)];

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		tests[i] = (struct CMUnitTest){ .name = records[i].name,
						.test_func = explain__as_recorded,
						.initial_state = (void *)&records[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
