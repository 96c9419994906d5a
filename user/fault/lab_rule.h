/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rules of the lab (xroce-lab(8)): their grammar, and which packets they select. Pure: no
 * system call and no clock. The rule, the seed and the packet's identity alone decide, and each
 * rule counts for itself, so that no rule changes the packets that another one selects.
 */
#ifndef LAB_RULE_H
#define LAB_RULE_H

#include "lab_kind.h"
#include "lab_words.h"

enum {
	LAB_HOSTS = 8, /* most hosts; numbers begin with 1 */
	LAB_RULE_TEXT = 160,
	LAB_RULE_SHOWN = 3, /* packets that the report shows of each rule */
};

enum lab_verb {
	LAB_DROP, LAB_DUPLICATE, LAB_DELAY, LAB_SWAP, LAB_CORRUPT, LAB_MARK,
	/* of an endpoint */
	LAB_FAIL, LAB_COMPLETE, LAB_LATE, LAB_HOLD, LAB_EVENT,
	LAB_RNR, LAB_NAK, LAB_CREDITS, LAB_CNP, LAB_ECN, LAB_REJECT,
	LAB_VERBS
};
/* Where a rule acts. */
enum lab_place {
	LAB_AT_CABLE,
	LAB_AT_CALLS,	    /* verbs that the program calls */
	LAB_AT_COMPLETIONS,
	LAB_AT_RESPONDER,   /* requests that arrive */
	LAB_AT_ANSWERS,	    /* acknowledgements that leave */
	LAB_AT_CM,	    /* requests for a connection that arrive */
};
enum lab_part { LAB_PAYLOAD, LAB_ICRC, LAB_QPN, LAB_PSN, LAB_OPCODE, LAB_PKEY };

struct lab_range {
	u32 from, to; /* inclusive; from 0: any */
};

/* The identity of a packet in its direction. */
struct lab_identity {
	u32 qpn, order; /* the destination QP; its place in the order of first packets, from 1 */
	u32 psn, step;	/* step: packets since the first one of its QP and kind of packet */
	u32 kind;
	u32 round; /* 1: the first transmission, 2: its first repetition */
};

struct lab_rule {
	char text[LAB_RULE_TEXT];
	enum lab_verb verb;
	enum lab_part part; /* of LAB_CORRUPT */
	u64 delay_ns;	    /* of LAB_DELAY, LAB_LATE */
	u32 from, to;	    /* hosts; 0: any, each direction counted by itself */
	/* of an endpoint's rule */
	u32 host;	     /* on which it acts; 0: all */
	u32 call;	     /* of LAB_FAIL, LAB_EVENT: enum lab_call */
	int err;	     /* of LAB_FAIL: an errno */
	u32 status;	     /* of LAB_COMPLETE: as enum ibv_wc_status */
	u32 event;	     /* of LAB_EVENT: enum lab_event */
	u32 works;	     /* kinds of completions, a bit for each enum lab_work; 0: any */
	u32 value;	     /* the AETH's: RNR timer, NAK code, credits; the REJ's reason */
	bool has_timer;
	bool any_kind;
	struct lab_kinds kinds;
	u32 positions;	/* OP_START, OP_END combinations, a bit each; 0: any */
	u32 order, qpn; /* of the destination QP; 0: any */
	struct lab_range nth, round;
	bool has_psn, is_step;
	u32 psn_from, psn_to; /* of the PSN; with is_step of the step */
	bool has_chance;
	u64 chance; /* of 2^64 */
	u32 times;  /* most packets in each direction; 0: all */
	/* results */
	u32 matched[LAB_HOSTS + 1][LAB_HOSTS + 1]; /* packets that the selectors but nth leave */
	u32 hit_in[LAB_HOSTS + 1][LAB_HOSTS + 1];
	u32 hits, num_shown;
	struct lab_hit {
		u8 from, to;
		struct lab_identity id;
	} shown[LAB_RULE_SHOWN];
};

/* Where an error is in a rule's text, and why. */
struct lab_error {
	u32 at, len;
	char why[120];
};

/*
 * Parses a rule for `hosts` hosts. Returns false with *error set; `rule` is undefined then.
 */
bool lab_rule_parse(const char *text, u32 hosts, struct lab_rule *rule, struct lab_error *error);
/* Parses a share of one: 0.01, 1%. Returns false if it is none, or not above 0. */
bool lab_chance_parse(const char *text, size_t len, u64 *chance);
/* Parses a time: 2ms, 500us, 1s. Returns false if it is none, or more than a minute. */
bool lab_time_parse(const char *text, size_t len, u64 *ns);

enum lab_place lab_rule_place(const struct lab_rule *rule);

/*
 * Counts a packet from one host to another, and returns whether the rule selects it. index: the
 * rule's place, from 0. positions: OP_START and OP_END of its opcode.
 */
bool lab_rule_selects(struct lab_rule *rule, u32 index, u64 seed, u32 from, u32 to, u32 flags,
		      const struct lab_identity *id);

#endif
