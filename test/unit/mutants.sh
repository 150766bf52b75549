#!/usr/bin/env bash
#
# test/unit/mutants.sh
#		Does order_test.c or order_sim_test.c fail if src/order.c is wrong?
#
# Makes one fault at a time in a copy, and expects that one of the tests fails.
# Is no part of check.sh.  Usage: test/unit/mutants.sh [STEPS]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
steps=${1:-2000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp src/order.c src/pool.c src/policy.c "$work"
survived=0

# Print what a test complains of.
complaints()
{
	local program=$1

	shift
	gcc -std=gnu99 -O2 -D_GNU_SOURCE -isystem "$(pg_config --includedir-server)" \
		-iquote src -Itest/unit -o "$work/$program" "test/unit/$program.c" \
		"$work/mutant.c" "$work/pool.c" "$work/policy.c" -lm
	timeout 60 "$work/$program" "$@" | sed -n 's/^not ok [0-9]* - //p' || true
}

# Arguments: a name, an edit of order.c for sed.
mutant()
{
	local table simulation result

	sed -E "$2" "$work/order.c" >"$work/mutant.c"
	if [ "$1" != "none" ] && cmp -s "$work/order.c" "$work/mutant.c"; then
		echo "$1: the edit changes nothing"
		survived=1
		return
	fi
	table=$(complaints order_test)
	simulation=$(complaints order_sim_test "$steps")
	[ -z "$table$simulation" ] && result=passes || result=caught
	echo "$1: $result"
	# shellcheck disable=SC2001
	[ -z "$table" ] || echo "$table" | sed 's/: step.*//' | uniq | sed 's/^/    table       /'
	# shellcheck disable=SC2001
	[ -z "$simulation" ] || echo "$simulation" | sed 's/^/    simulation  /'
	[ "$result" = "$([ "$1" = none ] && echo passes || echo caught)" ] || survived=1
}

mutant "none" ''
mutant "nothing is ever saved up" \
	's/^\tsave_up\(.*/\t;/; s/^\t\tsave_up\(.*/\t\t;/'
mutant "saved up at once" \
	'/^look_at_blocked/,/^}/s/if \(older_than.*/if (true)/'
mutant "no hand-off" \
	's/look->hand_off = older_than\(/look->hand_off = false \&\& older_than(/'
mutant "the wrong resource is saved up" \
	'/^save_up/,/^}/s/room->memory = REMAINS\(room->memory, memory\)/room->memory = room->memory; room->workers = Min(room->workers, 0)/'
mutant "memory is not saved up" \
	'/^save_up/,/^}/s/if \(memory > 0\)/if (false)/'
mutant "an answer does not clear who was notified" \
	'/^pgadm_order_answer/,/^}/s/pool->notified = NULL/(void) 0/'
mutant "who leaves stays notified" \
	'/^pgadm_order_leave/,/^}/s/pool->notified = NULL/(void) 0/'
mutant "who does not come stays notified" \
	'/^pgadm_order_turn/,/^}/s/pool->notified = NULL;/;/'
mutant "idle memory is not considered" \
	's/ - pool->usage\.memory_idle//'
mutant "the idle are not noted" \
	's/^\tpgadm_pool_note_idle.*/\t;/'
mutant "nobody is overdue" \
	's/PGADM_ORDER_PATIENCE_MS\) \? first : NULL/PGADM_ORDER_PATIENCE_MS) ? NULL : NULL/'
mutant "the overdue one is not saved up for" \
	'/^look_at_overdue/,/^}/s/save_up\(.*/;/'
mutant "the overdue one goes before any head" \
	's/\(waiter->head_since == 0 \|\| .*/true;/'
mutant "an unresponsive waiter is the first" \
	'/^is_passed_over/,/^}/s/waiter->unresponsive \|\| //'
mutant "those behind a head hold back" \
	's/if \(is_head && waiter->head_since == 0\)/if (waiter->head_since == 0)/'
mutant "several are notified" \
	's/^\tif \(pool->notified != NULL\)$/\tif (false)/'
exit "$survived"
