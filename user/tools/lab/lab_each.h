/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs of the programs by cases, one after another, and their results. */
#ifndef LAB_EACH_H
#define LAB_EACH_H

#include "lab_cases.h"

/*
 * Runs base's programs without a case and then by each one, or prints the cases if there is no
 * program. Returns the highest exit status of those that it did not survive.
 */
int lab_each(const struct lab *base);

/* lab_results.c */

/* Prints a line about a case that has run: its place, its name and its result. */
void lab_results_say(const struct lab_cases *cases, u32 i, FILE *out);
/* Prints the sum, the cases that the program did not survive, and a replay line for each. */
void lab_results_print(const struct lab_cases *cases, FILE *out);
void lab_results_json(const struct lab_cases *cases, FILE *out);
/* In the form of JUnit's reports, as CI systems read it. */
void lab_results_junit(const struct lab_cases *cases, FILE *out);
/* Returns the highest exit status: 1 at least for a case that was not survived, or if none ran. */
int lab_results_status(const struct lab_cases *cases);

#endif
