#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Compares documents with the source. The functions in each row of docs/life-of-a-packet.md must be
# in the file of the row. Every file and folder of the source that a document names in `code`, with
# or without its folder, and every link between documents must exist. A paragraph has at most 5
# lines.
#
# check-docs.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/..}" || exit 1

bad=0 seen=0
complain() {
	echo "$*" >&2
	bad=1
}
docs=(README.md CONTRIBUTING.md SECURITY.md docs/*.md tests/README.md)
names=$(find bpf docs include scripts tests user -name '*.[chS]' -o -name '*.sh' -o -name '*.md' | sed 's|.*/||' | sort -u)

# ---- functions ----
while IFS='|' read -r _ functions file _; do
	file=$(tr -d '` ' <<<"$file")
	for f in $(grep -oE '[a-z_]+\(\)' <<<"$functions" | tr -d '()'); do
		seen=$((seen + 1))
		grep -qsE "\\b$f\\(" "$file" || complain "docs/life-of-a-packet.md: no $f() in $file"
	done
done < <(grep -E '^\| `[a-z_]+\(\)' docs/life-of-a-packet.md)
[ $seen -gt 0 ] || complain "docs/life-of-a-packet.md: no function found"

# ---- comments ----
# Not words that end in a field's name (a.b.c), nor rdma-core's tag_matching.md.
while IFS=: read -r file line name; do
	seen=$((seen + 1))
	case $name in tag_matching.md) continue ;; esac
	grep -qxF -- "$name" <<<"$names" || complain "$file:$line: no $name anywhere"
done < <(grep -rnE --include='*.[chS]' '^(/\*| \*|	+ \*|.*/\*).*\.(c|md)\b' bpf include user |
	grep -oE '^[^:]+:[0-9]+|[ (/"][a-z0-9_]{3,}\.(c|md)\b' | awk '/:[0-9]+$/ { at = $0; next }
		{ print at ":" substr($0, 2) }' | grep -vE ':bpf\.c$' | sort -u)

for doc in "${docs[@]}"; do
	# ---- files, with a folder of the source ----
	while read -r path; do
		seen=$((seen + 1))
		compgen -G "$path" >/dev/null || complain "$doc: no $path"
	done < <(grep -oE '`(bpf|docs|include|scripts|tests|user)/[A-Za-z0-9_./*-]*[A-Za-z0-9_/*]`' "$doc" |
		tr -d '`' | sort -u)
	while read -r name; do
		seen=$((seen + 1))
		grep -qxF -- "$name" <<<"$names" || complain "$doc: no $name anywhere"
	done < <(grep -oE '`[a-z0-9_-]+\.([chS]|sh)`' "$doc" | tr -d '`' | sort -u)
	# ---- links ----
	while read -r link; do
		seen=$((seen + 1))
		[ -e "$(dirname "$doc")/$link" ] || complain "$doc: no $link"
	done < <(grep -oE '\]\([^)#:]+(#[^)]*)?\)' "$doc" | sed -E 's/^\]\(//; s/#.*//; s/\)$//' |
		sort -u)
	# ---- paragraphs ----
	awk -v doc="$doc" '
		function end() {
			if (n > 5) {
				printf "%s:%d: a paragraph of %d lines\n", doc, first, n >"/dev/stderr"
				bad = 1
			}
			n = 0
		}
		/^```/ { end(); code = !code; next }
		code { next }
		/^ *$|^#|^\|/ { end(); next }
		/^ *([-*]|[0-9]+\.) / { end() }
		{ if (!n++) first = NR }
		END { end(); exit bad }' "$doc" || bad=1
done
echo "$seen names looked at"
exit $bad
