/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Applies the rules and sorts their findings. Pure, like the rules. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "explain_rule.h"

enum rule_kind { RULE_PORT, RULE_CAUSE, RULE_SYMPTOM };

static const struct rule {
	const char *id;
	enum explain_severity severity;
	enum rule_kind kind;
	explain_fn *fn;
} rules[] = {
#define X(name, text, level, sort) { text, EXPLAIN_##level, RULE_##sort, explain_##name },
	EXPLAIN_RULES(X)
#undef X
};

/* ---- a finding ---- */

static void finding_print(char *to, size_t room, const char *fmt, va_list ap)
{
	const size_t used = strlen(to);

	vsnprintf(to + used, room - used, fmt, ap);
}

void finding_say(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void finding_guess(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->guess, sizeof(f->guess), fmt, ap);
	va_end(ap);
}

void finding_advise(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->advice, sizeof(f->advice), fmt, ap);
	va_end(ap);
}

void finding_number(struct finding *f, const char *name, u64 value)
{
	if (f->num_numbers < EXPLAIN_NUMBERS)
		f->number[f->num_numbers++] =
			(struct explain_number){ .name = name, .value = value };
}

void finding_count(const struct explain_case *c, struct finding *f, const char *name, u64 before,
		   u64 now)
{
	struct explain_number *n;

	if (f->num_numbers == EXPLAIN_NUMBERS)
		return;
	finding_number(f, name, now);
	n = &f->number[f->num_numbers - 1];
	n->has_rate = c->seconds > 0;
	n->rate = n->has_rate ? (double)grown(before, now) / c->seconds : 0;
}

/* ---- all findings ---- */

void findings_begin(struct findings *f)
{
	*f = (struct findings){ 0 };
}

void findings_end(struct findings *f)
{
	free(f->list);
	findings_begin(f);
}

static void findings_add(struct findings *f, const struct finding *one)
{
	if (f->num == f->room) {
		f->room = f->room ? 2 * f->room : 16;
		f->list = reallocarray(f->list, f->room, sizeof(*f->list));
		if (!f->list) {
			fprintf(stderr, "xroce: out of memory\n");
			exit(1);
		}
	}
	f->list[f->num++] = *one;
}

/*
 * A cause explains the symptoms of its QP; a port's cause, those of all QPs. It must be at least as
 * severe as the symptom.
 */
static bool finding_accounts(const struct finding *cause, const struct finding *symptom)
{
	return !cause->is_consequence && cause->severity != EXPLAIN_NOTE &&
	       cause->severity >= symptom->severity && rules[cause->rank].kind != RULE_SYMPTOM &&
	       (!cause->qpn || cause->qpn == symptom->qpn);
}

void explain_look(const struct explain_case *c, struct findings *f)
{
	for (u32 i = 0; i < ARRAY_SIZE(rules); i++) {
		struct finding one = { .id = rules[i].id,
				       .severity = rules[i].severity,
				       .rank = i };

		if ((rules[i].kind == RULE_PORT) == !!c->own.qp[1])
			continue;
		one.qpn = c->own.qp[1] ? c->own.qp[1]->qpn : 0;
		if (rules[i].fn(c, &one))
			findings_add(f, &one);
	}
}

/* Sorts consequences after all causes. */
static int finding_compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->is_consequence != y->is_consequence)
		return x->is_consequence ? 1 : -1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

void explain_sort(struct findings *f)
{
	u32 n = 0;

	for (u32 i = 0; i < f->num; i++)
		for (u32 j = 0; rules[f->list[i].rank].kind == RULE_SYMPTOM && j < f->num; j++)
			f->list[i].is_consequence |= finding_accounts(&f->list[j], &f->list[i]);
	if (f->num)
		qsort(f->list, f->num, sizeof(*f->list), finding_compare);
	for (u32 i = 0; i < f->num; i++) {
		struct finding *last = n ? &f->list[n - 1] : NULL;

		if (last && last->rank == f->list[i].rank &&
		    last->severity == f->list[i].severity &&
		    last->is_consequence == f->list[i].is_consequence)
			last->more++;
		else
			f->list[n++] = f->list[i];
	}
	f->num = n;
}

enum explain_severity explain_worst(const struct findings *f)
{
	enum explain_severity worst = EXPLAIN_NOTE;

	for (u32 i = 0; i < f->num; i++)
		if (f->list[i].severity > worst)
			worst = f->list[i].severity;
	return worst;
}
