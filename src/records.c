/*-------------------------------------------------------------------------
 *
 * records.c
 *		Finds the records of admitted queries.
 *
 * Most backends have one, which a list finds soonest.  One with thousands of
 * open cursors looks for each of them when its transaction ends, so beyond a
 * few there is an index, too: two hash tables with chains, one by query and
 * one by resource owner, of which several records may have the same.
 *
 * Neither to add a record nor to remove one can fail.  That is why this is not
 * simplehash.h: if there is no memory for a bigger index, the smaller one
 * serves on.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/records.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "records.h"
#include "utils/memutils.h"

/* From so many records on there is an index */
#define MIN_INDEXED		16

typedef struct Bucket
{
	dlist_head	by_query;
	dlist_head	by_owner;
} Bucket;

static dlist_head records = DLIST_STATIC_INIT(records);
static uint32 nrecords = 0;

static Bucket *index_buckets = NULL;
static uint32 nbuckets = 0;		/* a power of 2, or 0 without an index */

static Bucket *
bucket_of(const void *key)
{
	uint64		address = (uint64) (uintptr_t) key;

	return &index_buckets[murmurhash32((uint32) (address ^ (address >> 32))) & (nbuckets - 1)];
}

static void
add_to_index(PgAdmRecord *record)
{
	dlist_push_head(&bucket_of(record->queryDesc)->by_query, &record->by_query);
	dlist_push_head(&bucket_of(record->owner)->by_owner, &record->by_owner);
}

static void
drop_index(void)
{
	if (index_buckets != NULL)
		pfree(index_buckets);
	index_buckets = NULL;
	nbuckets = 0;
}

/*
 * Make the index, or make it bigger, if there is memory for that.
 */
static void
grow_index(void)
{
	uint32		n = Max(nbuckets * 2, MIN_INDEXED * 4);
	Bucket	   *buckets;
	dlist_iter	iter;

	buckets = MemoryContextAllocExtended(TopMemoryContext, n * sizeof(Bucket),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (buckets == NULL)
		return;

	drop_index();
	index_buckets = buckets;
	nbuckets = n;
	for (uint32 i = 0; i < n; i++)
	{
		dlist_init(&buckets[i].by_query);
		dlist_init(&buckets[i].by_owner);
	}
	dlist_foreach(iter, &records)
		add_to_index(dlist_container(PgAdmRecord, link, iter.cur));
}

void
pgadm_records_add(PgAdmRecord *record)
{
	dlist_push_head(&records, &record->link);
	nrecords++;
	if (nbuckets > 0)
		add_to_index(record);
	if (nrecords > Max(nbuckets, MIN_INDEXED))
		grow_index();
}

void
pgadm_records_remove(PgAdmRecord *record)
{
	dlist_delete(&record->link);
	nrecords--;
	if (nbuckets > 0)
	{
		dlist_delete(&record->by_query);
		dlist_delete(&record->by_owner);
	}
	if (nrecords == 0)
		drop_index();
}

/*
 * The records are gone, since the process exits.
 */
void
pgadm_records_forget_all(void)
{
	dlist_init(&records);
	nrecords = 0;
	drop_index();
}

bool
pgadm_records_is_empty(void)
{
	return nrecords == 0;
}

/*
 * The record of a query, or NULL.
 */
PgAdmRecord *
pgadm_records_of_query(const QueryDesc *queryDesc)
{
	dlist_iter	iter;

	if (nbuckets > 0)
	{
		dlist_foreach(iter, &bucket_of(queryDesc)->by_query)
		{
			PgAdmRecord *record = dlist_container(PgAdmRecord, by_query, iter.cur);

			if (record->queryDesc == queryDesc)
				return record;
		}
		return NULL;
	}

	dlist_foreach(iter, &records)
	{
		PgAdmRecord *record = dlist_container(PgAdmRecord, link, iter.cur);

		if (record->queryDesc == queryDesc)
			return record;
	}
	return NULL;
}

/*
 * A record of a query that has started under that resource owner, or NULL.
 */
PgAdmRecord *
pgadm_records_of_owner(ResourceOwner owner)
{
	dlist_iter	iter;

	if (nbuckets > 0)
	{
		dlist_foreach(iter, &bucket_of(owner)->by_owner)
		{
			PgAdmRecord *record = dlist_container(PgAdmRecord, by_owner, iter.cur);

			if (record->queryDesc != NULL && record->owner == owner)
				return record;
		}
		return NULL;
	}

	dlist_foreach(iter, &records)
	{
		PgAdmRecord *record = dlist_container(PgAdmRecord, link, iter.cur);

		if (record->queryDesc != NULL && record->owner == owner)
			return record;
	}
	return NULL;
}
