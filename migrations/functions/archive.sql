-- Retention: words of messages that have been out of the view for long move from message_body to archive_segments, and come
-- back when they are needed. What compresses and checks is store/archive.go; here is what it may do, in steps of one
-- transaction for each segment.

-- The numbers of messages as people read them: 3, 7-9.
CREATE OR REPLACE FUNCTION @schema@.seqs_text(p_seqs int8multirange) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT string_agg(concat_ws('-', lower(r), nullif(upper(r) - 1, lower(r))), ', ' ORDER BY r) FROM unnest(p_seqs) r
$$;

-- A change that needs words which are in the archive, or gone. CA001 and CA002 are codes of this schema.
CREATE OR REPLACE FUNCTION @schema@.refuse_archived(s @schema@.sessions, p_seqs int8multirange) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_seqs int8multirange := s.archived * p_seqs;
BEGIN
    IF isempty(v_seqs) THEN RETURN; END IF;
    IF EXISTS (SELECT FROM @schema@.archive_segments a WHERE a.sid = s.sid AND a.seqs && v_seqs AND a.data IS NULL) THEN
        RAISE EXCEPTION 'session %: words of messages % were purged', s.id, @schema@.seqs_text(v_seqs) USING ERRCODE = 'CA002',
            HINT = 'The policy says so (retention.purge_after): they cannot come back into the view.';
    END IF;
    RAISE EXCEPTION 'session %: the words of messages % are in the archive', s.id, @schema@.seqs_text(v_seqs) USING ERRCODE = 'CA001',
        DETAIL = v_seqs::text, HINT = format('Execute: compactor restore %s --tenant %s', quote_literal(s.id), quote_literal(s.tenant));
END $$;

-- The tenant of a connection that is bound reaches its own sessions alone by their number, too.
CREATE OR REPLACE FUNCTION @schema@.refuse_foreign(p_sid bigint) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF @schema@.binding() IS NOT NULL AND NOT EXISTS (SELECT FROM @schema@.sessions WHERE sid = p_sid AND tenant = @schema@.binding()) THEN
        PERFORM @schema@.refuse_bound();
    ELSIF p_sid IS NULL THEN
        RAISE EXCEPTION 'there is no such segment of the archive' USING ERRCODE = 'no_data_found';
    END IF;
END $$;

-- The messages of a session that have been in no view for p_age: in neither the present one, nor that of p_age ago, nor one
-- between the two. What a summary covers may be archived, what is pinned or erased may not.
CREATE OR REPLACE FUNCTION @schema@.archivable(s @schema@.sessions, p_age interval) RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT int8multirange(int8range(1, s.last_seq + 1)) - s.live - s.pinned - s.archived - s.erased - coalesce(
        (SELECT range_agg(x) FROM @schema@.runs r, unnest(r.live_before + r.live_after) x
         WHERE r.sid = s.sid AND r.status = 'applied' AND r.ended_at > now() - p_age), '{}')
$$;

-- Locks a session, unless another transaction has it, and returns the next messages to archive, with a segment's size of
-- words. Without one of seq 0, it was locked.
CREATE OR REPLACE FUNCTION @schema@.archive_page(p_sid bigint, p_age interval, p_most int, p_bytes bigint)
RETURNS TABLE (seq bigint, body text) LANGUAGE plpgsql SET jit = off SET plan_cache_mode = 'force_generic_plan' AS $$
DECLARE
    s      @schema@.sessions;
    v_seqs int8multirange;
BEGIN
    PERFORM @schema@.refuse_foreign(p_sid);
    SELECT * INTO s FROM @schema@.sessions t WHERE t.sid = p_sid FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    RETURN QUERY SELECT 0::bigint, ''::text;
    IF s.restored_at > now() - interval '1 day' THEN RETURN; END IF;
    v_seqs := @schema@.archivable(s, p_age);
    RETURN QUERY SELECT y.seq, y.body FROM (
        SELECT x.seq, x.body, sum(octet_length(x.body)) OVER (ORDER BY x.seq) - octet_length(x.body) AS before
        FROM (SELECT b.seq, b.body FROM unnest(v_seqs) r CROSS JOIN LATERAL (SELECT w.seq, w.body FROM @schema@.message_body w
                WHERE w.sid = p_sid AND w.seq >= lower(r) AND w.seq < upper(r) ORDER BY w.seq LIMIT p_most OFFSET 0) b
            ORDER BY b.seq LIMIT p_most) x) y
    WHERE y.before < p_bytes ORDER BY y.seq;
END $$;

-- p_old is a segment of the same session that this one is to replace: see replace_segment.
CREATE OR REPLACE FUNCTION @schema@.add_segment(p_sid bigint, p_seqs int8multirange, p_raw bigint, p_checksum bytea, p_data bytea, p_old bigint DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$
    SELECT @schema@.refuse_foreign(p_sid);
    INSERT INTO @schema@.archive_segments (sid, seqs, held, codec, raw_bytes, checksum, data, created_at)
    SELECT p_sid, p_seqs, p_seqs, 'zstd', p_raw, p_checksum, p_data, coalesce((SELECT created_at FROM @schema@.archive_segments WHERE id = p_old), now())
    RETURNING id
$$;

-- Whether a message whose words are in the archive says the same as a body, as far as that is known.
CREATE OR REPLACE FUNCTION @schema@.archived_as(p_sid bigint, p_seq bigint, p_body text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        (SELECT substr(@schema@.said_digest(p_body), 1, 16) IN (substr(d, 1, 16), substr(d, 17, 16))
         FROM @schema@.archive_segments a CROSS JOIN LATERAL (SELECT a.digests[(SELECT sum(least(upper(x), p_seq + 1) - lower(x))
            FROM unnest(a.held) x WHERE lower(x) <= p_seq)] AS d) w
         WHERE a.sid = p_sid AND a.seqs @> p_seq),
        (SELECT l.body_digest = @schema@.body_digest(p_body) FROM @schema@.message_log l WHERE l.sid = p_sid AND l.seq = p_seq), true)
$$;

-- The messages whose words a segment does not have, by the digests, among all those that it was taken apart into, in order.
CREATE OR REPLACE FUNCTION @schema@.forged_words(p_segment bigint, p_seqs bigint[], p_bodies text[]) RETURNS bigint[] LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    a @schema@.archive_segments;
BEGIN
    SELECT sid, digests INTO a.sid, a.digests FROM @schema@.archive_segments WHERE id = p_segment;
    PERFORM @schema@.refuse_foreign(a.sid);
    RETURN ARRAY(SELECT u.seq FROM unnest(p_seqs, p_bodies) WITH ORDINALITY u(seq, body, n) LEFT JOIN @schema@.message_log l ON l.sid = a.sid AND l.seq = u.seq
        WHERE l.body_digest IS DISTINCT FROM @schema@.body_digest(u.body) OR substr(a.digests[n], 1, 16) <> substr(@schema@.said_digest(u.body), 1, 16) ORDER BY 1);
END $$;

-- Deletes the words that a segment has, if what was read back and taken apart again (p_bodies) is what is stored, all of it.
-- stored is what the rows took, without those of the index.
CREATE OR REPLACE FUNCTION @schema@.empty_bodies(p_segment bigint, p_seqs bigint[], p_bodies text[], OUT messages bigint, OUT stored bigint, OUT segment bigint)
LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    a @schema@.archive_segments;
    s @schema@.sessions;
BEGIN
    SELECT * INTO a FROM @schema@.archive_segments WHERE id = p_segment;
    PERFORM @schema@.refuse_foreign(a.sid);
    SELECT * INTO s FROM @schema@.sessions WHERE sid = a.sid FOR NO KEY UPDATE;
    IF a.checksum <> sha256(a.data) OR s.live && a.seqs OR s.pinned && a.seqs OR s.archived && a.seqs OR s.erased && a.seqs
        OR a.seqs <> (SELECT range_agg(int8range(q, q + 1)) FROM unnest(p_seqs) q)
        OR EXISTS (SELECT FROM unnest(p_seqs, p_bodies) u(seq, body)
            LEFT JOIN @schema@.message_body b ON b.sid = a.sid AND b.seq = u.seq
            LEFT JOIN @schema@.message_log l ON l.sid = a.sid AND l.seq = u.seq
            WHERE b.body IS DISTINCT FROM u.body OR l.body_digest IS DISTINCT FROM @schema@.body_digest(u.body)) THEN
        RAISE EXCEPTION 'session %: segment % of the archive is not what is stored', s.id, p_segment USING ERRCODE = 'CA003',
            HINT = 'Nothing was archived. compactor doctor tells which messages are not as they were.';
    END IF;
    SELECT count(*), sum(pg_column_size(b.*)), pg_column_size(a.data) INTO messages, stored, segment
    FROM @schema@.message_body b WHERE b.sid = a.sid AND b.seq = ANY(p_seqs);
    UPDATE @schema@.archive_segments SET digests = (SELECT array_agg(@schema@.said_digest(u.body) ORDER BY u.seq) FROM unnest(p_seqs, p_bodies) u(seq, body))
    WHERE id = p_segment;
    UPDATE @schema@.sessions SET archived = archived + a.seqs WHERE sid = a.sid;
    DELETE FROM @schema@.message_body b WHERE b.sid = a.sid AND b.seq = ANY(p_seqs);
END $$;

-- Deletes a segment in favour of p_new, which has what was not erased of it, if what was read back of that and taken apart again
-- (p_bodies) is so. Who calls it has locked the session.
CREATE OR REPLACE FUNCTION @schema@.replace_segment(p_old bigint, p_new bigint, p_seqs bigint[], p_bodies text[]) RETURNS void LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    a @schema@.archive_segments;
    n @schema@.archive_segments;
    s @schema@.sessions;
BEGIN
    SELECT * INTO a FROM @schema@.archive_segments WHERE id = p_old;
    PERFORM @schema@.refuse_foreign(a.sid);
    SELECT * INTO n FROM @schema@.archive_segments WHERE id = p_new;
    SELECT * INTO s FROM @schema@.sessions WHERE sid = a.sid FOR NO KEY UPDATE;
    IF (n.sid = a.sid AND n.checksum = sha256(n.data) AND n.seqs = a.seqs - s.erased AND n.seqs = n.held
        AND n.seqs = (SELECT range_agg(int8range(q, q + 1)) FROM unnest(p_seqs) q) AND @schema@.forged_words(p_new, p_seqs, p_bodies) = '{}') IS NOT TRUE THEN
        RAISE EXCEPTION 'session %: segment % of the archive is not what was left of segment %', s.id, p_new, p_old USING ERRCODE = 'CA003',
            HINT = 'Nothing was erased. compactor doctor tells which messages are not as they were.';
    END IF;
    UPDATE @schema@.archive_segments SET digests = (SELECT array_agg(@schema@.said_digest(u.body) ORDER BY u.seq) FROM unnest(p_seqs, p_bodies) u(seq, body))
    WHERE id = p_new;
    DELETE FROM @schema@.archive_segments WHERE id = p_old;
END $$;

-- What archiving a session would move: messages, and what their rows take.
CREATE OR REPLACE FUNCTION @schema@.archive_preview(p_tenant text, p_session text, p_age interval, OUT messages bigint, OUT stored bigint)
LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    SELECT count(*), coalesce(sum(pg_column_size(b.*)), 0) INTO messages, stored
    FROM @schema@.sessions s CROSS JOIN LATERAL unnest(@schema@.archivable(s, p_age)) r
    CROSS JOIN LATERAL (SELECT * FROM @schema@.message_body w WHERE w.sid = s.sid AND w.seq >= lower(r) AND w.seq < upper(r) OFFSET 0) b
    WHERE s.tenant = v_tenant AND s.id = p_session;
END $$;

-- The segments that have words of a session, for who may read it.
CREATE OR REPLACE FUNCTION @schema@.archived_words(p_tenant text, p_session text, p_seqs int8multirange)
RETURNS TABLE (id bigint, seqs text, checksum bytea, data bytea) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_tenant text := @schema@.tenant_of(p_tenant);
BEGIN
    RETURN QUERY SELECT a.id, (a.seqs * s.archived)::text, a.checksum, a.data FROM @schema@.sessions s JOIN @schema@.archive_segments a ON a.sid = s.sid
        WHERE s.tenant = v_tenant AND s.id = p_session AND a.seqs && (s.archived * p_seqs) ORDER BY a.id;
END $$;

-- Locks a session for a restore.
CREATE OR REPLACE FUNCTION @schema@.lock_archived(p_tenant text, p_session text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.lock_session(p_tenant, p_session, NULL, false);
END $$;

-- Brings words back from a segment, which goes with the last of them. Who calls it has locked the session.
CREATE OR REPLACE FUNCTION @schema@.restore_bodies(p_segment bigint, p_seqs bigint[], p_bodies text[], OUT stored bigint, OUT segment bigint) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    a     @schema@.archive_segments;
    s     @schema@.sessions;
    v_bad bigint;
    v_set int8multirange := (SELECT range_agg(int8range(q, q + 1)) FROM unnest(p_seqs) q);
BEGIN
    SELECT * INTO a FROM @schema@.archive_segments WHERE id = p_segment;
    PERFORM @schema@.refuse_foreign(a.sid);
    SELECT * INTO s FROM @schema@.sessions WHERE sid = a.sid FOR NO KEY UPDATE;
    SELECT min(u.seq) INTO v_bad FROM unnest(p_seqs, p_bodies) u(seq, body) LEFT JOIN @schema@.message_log l ON l.sid = a.sid AND l.seq = u.seq
    WHERE NOT a.seqs @> u.seq OR l.body_digest IS DISTINCT FROM @schema@.body_digest(u.body);
    IF v_bad IS NOT NULL THEN
        RAISE EXCEPTION 'session %: message % in segment % of the archive is not what was said', s.id, v_bad, p_segment USING ERRCODE = 'CA003',
            HINT = 'Nothing was restored. Restore the segment from a backup.';
    END IF;
    INSERT INTO @schema@.message_body SELECT a.sid, u.seq, u.body FROM unnest(p_seqs, p_bodies) u(seq, body);
    SELECT sum(pg_column_size(b.*)), pg_column_size(a.data) INTO stored, segment FROM @schema@.message_body b WHERE b.sid = a.sid AND b.seq = ANY(p_seqs);
    IF a.seqs <@ v_set THEN
        DELETE FROM @schema@.archive_segments WHERE id = p_segment;
    ELSE
        UPDATE @schema@.archive_segments SET seqs = seqs - v_set WHERE id = p_segment;
    END IF;
    UPDATE @schema@.sessions SET archived = archived - v_set, restored_at = now() WHERE sid = a.sid;
END $$;

-- The next page of sessions to look at: those of the runs that were queued after the cursor of an age and ended that long
-- ago. It goes along the key of runs, so it costs the runs alone, each once for an age. A run that was queued that long ago
-- and has not ended is passed: the next one of its session counts. p_policies are those with this age; a child has that of
-- the first of its parents.
CREATE OR REPLACE FUNCTION @schema@.archive_candidates(p_age interval, p_policies text[], p_limit int)
RETURNS TABLE (run bigint, sid bigint) LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    v_from  bigint := coalesce((SELECT c.run FROM @schema@.archive_cursors c WHERE c.after = p_age), 0);
    v_until bigint;
BEGIN
    SELECT min(x.id) INTO v_until FROM (SELECT r.id, coalesce(r.ended_at, r.queued_at) AS at FROM @schema@.runs r WHERE r.id > v_from ORDER BY r.id LIMIT p_limit) x
    WHERE x.at > now() - p_age;
    RETURN QUERY SELECT x.id, CASE WHEN x.status = 'applied' AND EXISTS (SELECT FROM @schema@.sessions s
            WHERE s.sid = coalesce((SELECT t.sid FROM @schema@.ancestors(x.sid) WITH ORDINALITY t(sid, n) ORDER BY n DESC LIMIT 1), x.sid)
                AND s.policy = ANY(p_policies)) THEN x.sid END
        FROM (SELECT * FROM @schema@.runs r WHERE r.id > v_from AND (v_until IS NULL OR r.id < v_until) ORDER BY r.id LIMIT p_limit) x ORDER BY 1;
END $$;

CREATE OR REPLACE FUNCTION @schema@.pass_archived(p_age interval, p_run bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO @schema@.archive_cursors AS c (after, run) VALUES (p_age, p_run)
    ON CONFLICT (after) DO UPDATE SET run = greatest(c.run, excluded.run)
$$;

-- What the tables take with their indexes and TOAST; of this, words, those with the words of messages; and freed, what the
-- archiver for a disk budget has deleted of these that nothing has used again, as far as it is known: room that a vacuum
-- has made is used before a table grows, by which it may have grown before that vacuum, too, and what it has returned to the
-- disk is not in bytes. more is that there are runs
-- which it has not come to (archive_oldest).
CREATE OR REPLACE FUNCTION @schema@.disk_use(OUT bytes bigint, OUT words bigint, OUT freed bigint, OUT more boolean, OUT moved_at timestamptz) LANGUAGE plpgsql STABLE AS $$
DECLARE
    d          @schema@.disk_passes;
    v_vacuumed timestamptz;
BEGIN
    PERFORM @schema@.refuse_bound();
    SELECT * INTO d FROM @schema@.disk_passes;
    SELECT sum(pg_total_relation_size(c.oid)), sum(pg_total_relation_size(c.oid)) FILTER (WHERE w.is),
        least(max(greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid))) FILTER (WHERE w.is),
            max(greatest(pg_stat_get_last_vacuum_time(c.reltoastrelid), pg_stat_get_last_autovacuum_time(c.reltoastrelid))) FILTER (WHERE w.is))
        INTO bytes, words, v_vacuumed
    FROM pg_class c, LATERAL (SELECT c.oid = '@schema@.message_body'::regclass
        OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid AND inhparent = '@schema@.message_body'::regclass)) w("is")
    WHERE c.relnamespace = '@schema@'::regnamespace AND c.relkind = 'r';
    freed := CASE WHEN words > d.words AND v_vacuumed > d.moved_at THEN greatest(d.freed - (words - d.words), 0)
        ELSE greatest(d.freed - greatest(d.words - words, 0), 0) END;
    freed := coalesce(freed, 0);
    more := coalesce((SELECT coalesce(r.ended_at, r.queued_at) <= now() - interval '1 day' FROM @schema@.runs r WHERE r.id > coalesce(d.run, 0) ORDER BY r.id LIMIT 1), false);
    moved_at := d.moved_at;
END $$;

-- The next page of runs for a disk budget, in order, of any policy, that ended a day ago or earlier; those whose sessions
-- are to be looked at with their sid. age is that of the newest of the page: older words go first, page by page. What left
-- the view within a day stays, so that an undo needs no restore.
CREATE OR REPLACE FUNCTION @schema@.archive_oldest(p_limit int)
RETURNS TABLE (run bigint, sid bigint, age interval) LANGUAGE plpgsql STABLE SET jit = off AS $$
DECLARE
    v_from  bigint := coalesce((SELECT d.run FROM @schema@.disk_passes d), 0);
    v_until bigint;
BEGIN
    SELECT min(x.id) INTO v_until FROM (SELECT r.id, coalesce(r.ended_at, r.queued_at) AS at FROM @schema@.runs r WHERE r.id > v_from ORDER BY r.id LIMIT p_limit) x
    WHERE x.at > now() - interval '1 day';
    RETURN QUERY SELECT x.id, CASE WHEN x.status = 'applied' THEN x.sid END, greatest(interval '1 day', now() - max(x.ended_at) OVER ())
        FROM (SELECT * FROM @schema@.runs r WHERE r.id > v_from AND (v_until IS NULL OR r.id < v_until) ORDER BY r.id LIMIT p_limit) x ORDER BY 1;
END $$;

-- Records that the archiver for a disk budget has come to a run, and the bytes of the rows that it has deleted since.
CREATE OR REPLACE FUNCTION @schema@.pass_oldest(p_run bigint, p_freed bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO @schema@.disk_passes AS d (run, words, freed) SELECT p_run, u.words, u.freed + p_freed FROM @schema@.disk_use() u
    ON CONFLICT (one) DO UPDATE SET run = greatest(d.run, excluded.run), words = excluded.words, freed = excluded.freed, moved_at = now()
$$;

-- Takes the words of segments that are older than p_age, of sessions with one of these policies, for good. The rows of the
-- messages stay, with their digests. Returns how many. A segment that was made before its policy wanted it, for a disk
-- budget or by hand, stays until its words have been out of the view for p_out.
CREATE OR REPLACE FUNCTION @schema@.purge_archive(p_age interval, p_policies text[], p_limit int, p_out interval) RETURNS bigint LANGUAGE sql AS $$
    WITH gone AS (   -- not of a session that is locked: an erasure or a restore may read the segment
        UPDATE @schema@.archive_segments SET data = NULL, purged_at = now(), purged_after = p_age WHERE id IN (
            SELECT a.id FROM @schema@.archive_segments a JOIN @schema@.sessions l ON l.sid = a.sid WHERE a.data IS NOT NULL AND a.created_at < now() - p_age
                AND NOT EXISTS (SELECT FROM @schema@.runs r WHERE r.sid = a.sid AND r.status = 'applied' AND r.ended_at > now() - p_out AND r.live_before && a.seqs)
                AND EXISTS (SELECT FROM @schema@.sessions s WHERE s.policy = ANY(p_policies)
                    AND s.sid = coalesce((SELECT t.sid FROM @schema@.ancestors(a.sid) WITH ORDINALITY t(sid, n) ORDER BY n DESC LIMIT 1), a.sid))
            ORDER BY a.created_at LIMIT p_limit FOR UPDATE OF a, l SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
$$;

-- Words may go from message_body where a segment has them.
CREATE OR REPLACE FUNCTION @schema@.refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM gone g WHERE NOT EXISTS (SELECT FROM @schema@.archive_segments a WHERE a.sid = g.sid AND a.seqs @> g.seq AND a.data IS NOT NULL)) THEN
        RAISE EXCEPTION '%.% is append-only: % refused, as the archive does not have these words', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
            USING ERRCODE = 'restrict_violation', HINT = 'compactor archive moves words to the archive.';
    END IF;
    RETURN NULL;
END $$;

-- A segment may go, or lose messages, when their words are back or in another segment; and it may lose its words by a purge. Nothing
-- else of it changes.
CREATE OR REPLACE FUNCTION @schema@.keep_segment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_out int8multirange := OLD.seqs - CASE TG_OP WHEN 'DELETE' THEN '{}' ELSE NEW.seqs END;
    v_ok  boolean := true;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        v_ok := ROW(NEW.id, NEW.sid, NEW.codec, NEW.raw_bytes, NEW.checksum, NEW.created_at) = ROW(OLD.id, OLD.sid, OLD.codec, OLD.raw_bytes, OLD.checksum, OLD.created_at)
            AND NEW.held = OLD.held AND (OLD.digests IS NULL OR NEW.digests = OLD.digests)
            AND NEW.seqs <@ OLD.seqs AND (NEW.data IS NOT DISTINCT FROM OLD.data OR NEW.data IS NULL AND NEW.seqs = OLD.seqs);
    ELSE
        v_out := v_out - coalesce((SELECT range_agg(x) FROM @schema@.archive_segments a, unnest(a.seqs) x
            WHERE a.sid = OLD.sid AND a.id <> OLD.id AND a.data IS NOT NULL), '{}');
    END IF;
    IF NOT coalesce(v_ok, false) OR (SELECT count(*) FROM unnest(v_out) x JOIN @schema@.message_body b ON b.sid = OLD.sid AND b.seq >= lower(x) AND b.seq < upper(x))
            <> (SELECT coalesce(sum(upper(x) - lower(x)), 0) FROM unnest(v_out) x) THEN
        RAISE EXCEPTION '%.% is append-only: % refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation',
            HINT = 'compactor restore brings words back.';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
