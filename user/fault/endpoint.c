/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>

#include "endpoint.h"

static const char *const call_names[] = {
#define X(name) [CALL_##name] = #name,
	LAB_CALLS(X)
#undef X
};

/* ---- the text ---- */

static bool add_rule(struct fault_table *t, const char *text, struct lab_error *error)
{
	struct lab_rule *r = &t->rule[t->num];

	if (t->num == FAULT_RULES) {
		*error = (struct lab_error){ .len = 1 };
		snprintf(error->why, sizeof(error->why), "more than %d rules", FAULT_RULES);
		return false;
	}
	if (!lab_rule_parse(text, LAB_HOSTS, r, error))
		return false;
	if (lab_rule_place(r) == LAB_AT_CABLE) {
		*error = (struct lab_error){ .at = (u32)strspn(text, " \t") };
		error->len = (u32)strcspn(text + error->at, " \t");
		snprintf(error->why, sizeof(error->why),
			 "a rule of the cable of `xroce lab`, not of an endpoint");
		return false;
	}
	snprintf(t->results->rule[t->num], sizeof(t->results->rule[0]), "%s",
		 text + strspn(text, " \t"));
	t->places |= 1u << lab_rule_place(r);
	t->num++;
	return true;
}

bool fault_parse(struct fault_table *t, const char *text, u64 seed, struct fault_results *results,
		 struct lab_error *error, char wrong[LAB_RULE_TEXT])
{
	memset(t, 0, sizeof(*t));
	t->seed = seed;
	t->results = results;
	results->magic = FAULT_RESULTS_MAGIC;
	while (*text) {
		const size_t len = strcspn(text, ";\n");
		const size_t kept = len < LAB_RULE_TEXT ? len : LAB_RULE_TEXT - 1;

		memcpy(wrong, text, kept);
		wrong[kept] = 0;
		if (len > kept) {
			*error = (struct lab_error){ .at = LAB_RULE_TEXT - 1, .len = 1 };
			snprintf(error->why, sizeof(error->why), "a rule has at most %d characters",
				 LAB_RULE_TEXT - 1);
			return false;
		}
		/* nothing between two separators is no rule */
		if (strspn(wrong, " \t") < kept && !add_rule(t, wrong, error))
			return false;
		text += len + (text[len] != 0);
	}
	results->num = t->num;
	return true;
}

/* ---- counting ---- */

void fault_know_qp(struct fault_table *t, u32 qpn)
{
	const u32 slot = qpn % XROCE_MAX_QP;

	spin_lock_if(true, &t->lock);
	t->order[slot] = ++t->num_qps;
	t->asked[slot].round = 0;
	t->sent[slot] = t->completed[0][slot] = t->completed[1][slot] = 0;
	spin_unlock(&t->lock);
}

/* Returns the place for the text of a hit, or NULL when enough are shown. The lock is held. */
static char *select_by(struct fault_table *t, u32 i, u32 flags, const struct lab_identity *id,
		       bool *hit)
{
	struct fault_result *result = &t->results->result[i];
	struct lab_rule *r = &t->rule[i];

	*hit = lab_rule_selects(r, i, t->seed, 0, 0, flags, id);
	result->matched = r->matched[0][0];
	result->hits = r->hits;
	if (!*hit || r->hits > LAB_RULE_SHOWN)
		return t->unseen;
	result->num_shown = r->hits;
	return result->shown[r->hits - 1];
}

/* The number of a call, answer or completion that the rule's other selectors leave. */
static u32 number_of(const struct lab_rule *r)
{
	return r->matched[0][0] + 1;
}

int fault_call(struct fault_table *t, enum lab_call call, enum lab_event *event)
{
	int err = 0;
	bool hit;

	*event = LAB_NUM_EVENTS;
	if (!(t->places & 1u << LAB_AT_CALLS))
		return 0;
	spin_lock_if(true, &t->lock);
	for (u32 i = 0; i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];
		const struct lab_identity id = { .step = number_of(r), .kind = call, .round = 1 };

		if (lab_rule_place(r) != LAB_AT_CALLS || r->call != call)
			continue;
		snprintf(select_by(t, i, 0, &id, &hit), FAULT_SHOWN_TEXT, "%s, call %u",
			 call_names[call], id.step);
		if (hit && r->verb == LAB_FAIL && !err)
			err = r->err;
		if (hit && r->verb == LAB_EVENT)
			*event = (enum lab_event)r->event;
	}
	spin_unlock(&t->lock);
	return err;
}

u16 fault_reject(struct fault_table *t)
{
	u16 reason = 0;
	bool hit;

	if (!(t->places & 1u << LAB_AT_CM))
		return 0;
	spin_lock_if(true, &t->lock);
	for (u32 i = 0; i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];
		const struct lab_identity id = { .step = number_of(r), .round = 1 };

		if (lab_rule_place(r) != LAB_AT_CM)
			continue;
		snprintf(select_by(t, i, 0, &id, &hit), FAULT_SHOWN_TEXT, "cm.req %u", id.step);
		if (hit && !reason)
			reason = (u16)r->value;
	}
	spin_unlock(&t->lock);
	return reason;
}

/* ---- the engine's questions ---- */

static enum lab_work work_of(u32 opcode)
{
	static const u8 works[] = {
		[CQE_SEND] = LAB_WORK_send,	    [CQE_WRITE] = LAB_WORK_write,
		[CQE_READ] = LAB_WORK_read,	    [CQE_COMP_SWAP] = LAB_WORK_atomic,
		[CQE_FETCH_ADD] = LAB_WORK_atomic,  [CQE_BIND_MW] = LAB_WORK_bind,
		[CQE_LOCAL_INV] = LAB_WORK_invalidate, [CQE_FLUSH] = LAB_WORK_flush,
		[CQE_ATOMIC_WRITE] = LAB_WORK_write,
	};

	return opcode < ARRAY_SIZE(works) ? (enum lab_work)works[opcode] : LAB_WORK_recv;
}

static const char *const work_names[] = {
#define X(name) [LAB_WORK_##name] = #name,
	LAB_WORKS(X)
#undef X
};

/* Returns whether a rule of completions is for this kind. */
static bool is_for_work(const struct lab_rule *r, enum lab_work work)
{
	return !r->works || r->works >> work & 1;
}

static void show_work(char *text, enum lab_work work, const struct lab_identity *id)
{
	snprintf(text, FAULT_SHOWN_TEXT, "%s %u of qp %u (0x%x)", work_names[work], id->step,
		 id->order, id->qpn);
}

/* Returns the status by which a completion of this kind fails; the lock is held. */
static u32 status_of(struct fault_table *t, enum lab_work work, const struct lab_identity *id)
{
	u32 status = 0;
	bool hit;

	for (u32 i = 0; i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];

		if (r->verb != LAB_COMPLETE || !is_for_work(r, work))
			continue;
		show_work(select_by(t, i, 0, id, &hit), work, id);
		if (hit && !status)
			status = r->status;
	}
	return status;
}

static struct lab_identity identity_of(const struct fault_table *t, u32 qpn, u32 step, u32 kind)
{
	return (struct lab_identity){ .qpn = qpn,
				      .order = t->order[qpn % XROCE_MAX_QP],
				      .step = step,
				      .kind = kind,
				      .round = 1 };
}

static u32 ask_sent(void *arg, const struct qp *qp, u32 opcode)
{
	struct fault_table *t = arg;
	struct lab_identity id;
	u32 status;

	if (!(t->places & 1u << LAB_AT_COMPLETIONS))
		return 0;
	spin_lock_if(true, &t->lock);
	id = identity_of(t, qp->qpn, ++t->sent[qp->qpn % XROCE_MAX_QP], work_of(opcode));
	status = id.order ? status_of(t, work_of(opcode), &id) : 0;
	spin_unlock(&t->lock);
	return status;
}

static u64 ask_delay_ns(void *arg, const struct cqe *cqe)
{
	const enum lab_work work = work_of(cqe->opcode);
	struct fault_table *t = arg;
	struct lab_identity id;
	u64 delay_ns = 0;
	u32 *count;
	bool hit;

	if (!(t->places & 1u << LAB_AT_COMPLETIONS))
		return 0;
	spin_lock_if(true, &t->lock);
	count = &t->completed[work == LAB_WORK_recv][cqe->qpn % XROCE_MAX_QP];
	id = identity_of(t, cqe->qpn, ++*count, work);
	for (u32 i = 0; id.order && i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];

		if ((r->verb != LAB_LATE && r->verb != LAB_HOLD) || !is_for_work(r, work))
			continue;
		show_work(select_by(t, i, 0, &id, &hit), work, &id);
		if (hit)
			delay_ns = r->verb == LAB_HOLD ? NSEC_NEVER :
							 max_u64(delay_ns, r->delay_ns);
	}
	spin_unlock(&t->lock);
	return delay_ns;
}

static int ask_credits(void *arg, const struct qp *qp)
{
	struct fault_table *t = arg;
	int credits = -1;
	bool hit;

	if (!(t->places & 1u << LAB_AT_ANSWERS))
		return -1;
	spin_lock_if(true, &t->lock);
	for (u32 i = 0; i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];
		const struct lab_identity id = identity_of(t, qp->qpn, number_of(r), 0);

		if (r->verb != LAB_CREDITS || !id.order)
			continue;
		snprintf(select_by(t, i, 0, &id, &hit), FAULT_SHOWN_TEXT,
			 "answer %u of qp %u (0x%x)", id.step, id.order, id.qpn);
		if (hit && credits < 0)
			credits = (int)r->value;
	}
	spin_unlock(&t->lock);
	return credits;
}

/* An RNR rule without a kind is for requests that consume a receive. */
static bool concerns(const struct lab_rule *r, const struct packet *p)
{
	return r->verb != LAB_RNR || !r->any_kind || (p->flags & OP_SEND && p->flags & OP_START) ||
	       (p->flags & OP_WRITE && p->flags & OP_IMM);
}

static void apply(const struct lab_rule *r, struct fault_request *out)
{
	switch (r->verb) {
	case LAB_CNP:
		out->sends_cnp = true;
		return;
	case LAB_ECN:
		out->is_marked = true;
		return;
	default:
		if (out->answer != FAULT_EXECUTE)
			return;
		out->answer = r->verb == LAB_RNR ? FAULT_RNR : FAULT_NAK;
		out->value = r->verb == LAB_RNR && !r->has_timer ? FAULT_OWN_TIMER : (u8)r->value;
	}
}

/* Counts how often this request has been asked about: a refused one is sent again. */
static u32 count_round(struct fault_table *t, u32 slot, u32 psn)
{
	if (!t->asked[slot].round || t->asked[slot].psn != psn)
		t->asked[slot].round = 0;
	t->asked[slot].psn = psn;
	return ++t->asked[slot].round;
}

static void ask_request(void *arg, const struct qp *qp, const struct packet *p, bool completes,
			struct fault_request *out)
{
	const u32 slot = qp->qpn % XROCE_MAX_QP;
	struct fault_table *t = arg;
	struct lab_identity id, recv;
	char name[LAB_KIND_NAME], *text;
	bool hit;

	*out = (struct fault_request){ .answer = FAULT_EXECUTE };
	spin_lock_if(true, &t->lock);
	id = identity_of(t, qp->qpn, (p->psn - qp->attr.rq_psn) & ROCE_PSN_MASK, p->opcode);
	id.psn = p->psn;
	id.round = count_round(t, slot, p->psn);
	for (u32 i = 0; id.order && i < t->num; i++) {
		struct lab_rule *r = &t->rule[i];

		if (lab_rule_place(r) != LAB_AT_RESPONDER || !concerns(r, p))
			continue;
		text = select_by(t, i, p->flags, &id, &hit);
		if (!hit)
			continue;
		lab_kind_name(id.kind, name);
		snprintf(text, FAULT_SHOWN_TEXT, "%s qp %u (0x%x) psn 0x%x (+%u) round %u", name,
			 id.order, id.qpn, id.psn, id.step, id.round);
		apply(r, out);
	}
	if (completes && id.order && out->answer == FAULT_EXECUTE) {
		recv = identity_of(t, qp->qpn, t->completed[1][slot] + 1, LAB_WORK_recv);
		out->status = (u16)status_of(t, LAB_WORK_recv, &recv);
		out->answer = out->status ? FAULT_RECEIVE : FAULT_EXECUTE;
	}
	spin_unlock(&t->lock);
}

const struct engine_faults *fault_engine(struct fault_table *t)
{
	if (!(t->places & ~(1u << LAB_AT_CALLS | 1u << LAB_AT_CM)))
		return NULL;
	t->engine = (struct engine_faults){ .arg = t,
					    .request = ask_request,
					    .sent = ask_sent,
					    .credits = ask_credits,
					    .delay_ns = ask_delay_ns };
	return &t->engine;
}
