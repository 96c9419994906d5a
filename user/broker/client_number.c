/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../os/kernel.h"
#include "client.h"
#include "client_cm.h"
#include "client_number.h"

#define DISOWN_BATCH 64

u32 client_number_random(void *arg)
{
	struct broker *b = arg;

	if (!b->random_left) {
		kernel_random_renew(b->random, ARRAY_SIZE(b->random));
		b->random_left = ARRAY_SIZE(b->random);
	}
	return (u32)b->random[--b->random_left];
}

/* Takes number *qpn for the client, or draws one if *qpn is 0. Returns 0 or -errno. */
static int client_number_take(struct client *c, u32 *qpn)
{
	struct broker *b = c->broker;
	int err = quota_take(&b->quota, c->user, QUOTA_QPS);

	if (err)
		return err;
	err = *qpn ? numbers_claim(&b->numbers, *qpn, c->number, &c->qpns) :
		     numbers_draw(&b->numbers, client_number_random, b, c->number, &c->qpns, qpn);
	if (!err) {
		err = mux_own(&b->mux, *qpn, c->number, c->pid);
		if (err)
			numbers_release(&b->numbers, *qpn, c->number, &c->qpns);
	}
	if (err)
		quota_give(&b->quota, c->user, QUOTA_QPS, 1);
	else
		c->qps++;
	return err;
}

void client_number_draw(struct client *c)
{
	struct ask_answer answer = { .what = ASK_DRAW };

	answer.err = c->number == CLIENT_NONE ? -ENOTCONN : client_number_take(c, &answer.number);
	client_send(c, &answer, NULL);
}

int client_number_claim(struct client *c, u32 qpn)
{
	int err = c->number == CLIENT_NONE ? -ENOTCONN : 0;

	if (!err && qpn == XROCE_CM_QPN)
		return client_cm_claim(c);
	if (!err)
		err = c->rights.admin ? numbers_check(qpn) : -EPERM;
	return err ? err : client_number_take(c, &qpn);
}

int client_number_release(struct client *c, u32 qpn)
{
	struct broker *b = c->broker;

	if (qpn == XROCE_CM_QPN)
		return client_cm_release(c);
	if (c->number == CLIENT_NONE || numbers_release(&b->numbers, qpn, c->number, &c->qpns))
		return -ENOENT;
	mux_disown(&b->mux, &qpn, 1);
	quota_give(&b->quota, c->user, QUOTA_QPS, 1);
	c->qps--;
	return 0;
}

void client_number_end(struct client *c)
{
	struct broker *b = c->broker;
	u32 qpn[DISOWN_BATCH], n;

	do {
		for (n = 0; n < DISOWN_BATCH && numbers_pop(&b->numbers, &c->qpns, &qpn[n]); n++)
			;
		mux_disown(&b->mux, qpn, n);
	} while (n == DISOWN_BATCH);
	quota_give(&b->quota, c->user, QUOTA_QPS, c->qps);
}
