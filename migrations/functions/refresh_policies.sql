-- The transactions that lock or write sessions now, but for the caller's. One that begins to later reads policies later, too:
-- locks are taken before snapshots.
CREATE OR REPLACE FUNCTION @schema@.writers_of_sessions() RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(virtualtransaction), '{}') FROM pg_locks
    WHERE relation = '@schema@.sessions'::regclass AND mode IN ('RowShareLock', 'RowExclusiveLock') AND granted AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;

-- Whether sessions may be left that do not follow the policies. Once an hour they are looked for among those of the runs
-- since then: workers with another configuration leave thresholds of that, under the number of those in force.
CREATE OR REPLACE FUNCTION @schema@.refresh_pending(r @schema@.policy_refresh) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT r.reached < r.wanted OR r.reached_at < now() - interval '1 hour'
$$;

-- Gives the next sessions the policy and thresholds that they should have, p_limit of them at most, and returns how many.
-- Sessions for which nothing follows from it before their next write are left as they are: what locks them next,
-- lock_session mostly, gives them the thresholds then (follow_policy), and what only reads takes shown_session.
-- state: idle (all sessions follow the policies), page (call again), pass (a pass has ended, and another one is needed,
-- for sessions that a transaction held or may have created under the policies before), done (the last page). The passes
-- go on where another caller has left them, and start anew when policies change meanwhile.
CREATE OR REPLACE FUNCTION @schema@.refresh_policies(p_limit int, OUT state text, OUT changed int) LANGUAGE plpgsql SET jit = off AS $$
DECLARE
    r        @schema@.policy_refresh;
    s        @schema@.sessions;
    -- Of the sessions of a page, which are on the same blocks, each third is changed in a call: a block has room for a few new
    -- versions of its rows, and what follows in other transactions takes the place of the old ones.
    v_scan   int := 3 * p_limit;
    v_sids   bigint[];   -- to change; by their index: the version of the row, its policy, and where its thresholds are
    v_rows   text[];
    v_names  text[];
    v_of     text[];
    v_prefix text[];
    v_new    @schema@.sessions[];
    v_wake   bigint[];
    v_moved  @schema@.sessions[];   -- written meanwhile
    v_done   bigint[];
    v_next   bigint;
    v_seen   bigint;
BEGIN
    changed := 0;
    state := 'idle';
    SELECT * INTO r FROM @schema@.policy_refresh;
    IF NOT @schema@.refresh_pending(r) THEN
        RETURN;
    END IF;
    SELECT * INTO r FROM @schema@.policy_refresh FOR UPDATE;
    state := 'page';
    IF r.reached = r.wanted THEN
        UPDATE @schema@.policy_refresh SET reached_at = now(), wanted = wanted + EXISTS (
            SELECT FROM @schema@.runs q JOIN @schema@.sessions p ON p.sid = q.sid
            WHERE q.ended_at >= r.reached_at - interval '10 minutes' AND p.policy_hash NOT IN (SELECT policy_hash FROM @schema@.thresholds)
                AND p.thresholds_revision IN (SELECT revision FROM @schema@.thresholds))::int;
        RETURN;
    ELSIF r.revision < r.wanted THEN
        -- The first pass begins with the next call: older transactions have mostly ended by then.
        UPDATE @schema@.policy_refresh SET revision = wanted, older = @schema@.writers_of_sessions(), cursor_sid = 0,
            last_sid = coalesce((SELECT max(sid) FROM @schema@.sessions), 0), skipped_sid = NULL, changed = 0;
        RETURN;
    END IF;
    IF r.cursor_sid = 0 THEN
        r.final := cardinality(r.older) = 0 OR NOT r.older && @schema@.writers_of_sessions();
        r.skipped_sid := NULL;
    END IF;
    PERFORM set_config('compactor.quiet', 'on', true);   -- the scheduler finds what becomes due, at the pace of the workers
    WITH page AS MATERIALIZED (
        SELECT p.sid, p.tenant, p.model, CASE WHEN p.parent IS NULL THEN p.labels ELSE @schema@.effective_labels(p.labels, p.parent) END AS labels,
            coalesce(p.policy_override, '') AS override, p.policy, p.policy_hash, p.thresholds_revision, p.xmin::text AS version, p.due, p.timed, p.state, p.hold_code,
            p.last_source_seq, p.hold_seq, p.suspect_seq, p.reported_prompt_tokens, p.tokens_since_report, p.live_tokens, p.live_estimated_tokens,
            p.messages_since_run, p.turns_since_run, p.tokens_since_run, p.live_messages, p.new_signals, p.due_idle, p.due_age, p.due_since_run
        FROM @schema@.sessions p WHERE p.sid > r.cursor_sid ORDER BY p.sid LIMIT v_scan
    ), kinds AS MATERIALIZED (
        SELECT k.*, n.name, h.policy AS of, h.model_prefix AS prefix, coalesce(h.policy_hash, '') AS hash, coalesce(h.revision, 0) AS revision,
            h.due_tokens, coalesce(h.estimate_margin, 0) AS margin, h.due_messages, h.due_turns, h.due_new_tokens, h.due_live_messages, coalesce(h.due_signals, 0) AS due_signals,
            h.due_idle AS idle, h.due_age AS age, h.due_since_run AS since_run, num_nonnulls(h.due_age, h.due_since_run) > 0 AS ages, c.overhead, c.scale
        FROM (SELECT DISTINCT tenant, model, labels, override FROM page) k
        CROSS JOIN LATERAL @schema@.policy_of(k.tenant, k.model, k.labels, k.override) n(name)
        LEFT JOIN LATERAL @schema@.thresholds_of(n.name, k.model) h ON true
        LEFT JOIN @schema@.calibrations c ON c.tenant = k.tenant AND c.model = @schema@.model_key(k.model)
    ), differ AS (
        SELECT p.sid, p.version, k.name, k.of, k.prefix, row_number() OVER (ORDER BY p.sid % 3, p.sid) AS n FROM page p JOIN kinds k USING (tenant, model, labels, override)
        WHERE (p.policy, p.policy_hash, p.thresholds_revision) <> (k.name, k.hash, k.revision)
            AND (p.policy <> k.name OR k.of <> k.name OR p.thresholds_revision = k.revision   -- with those of a worker
                -- What with_thresholds changes that is seen before the next write: a test compares.
                OR p.state <> 'active' OR p.hold_code IS NOT NULL OR k.ages OR (p.due_idle, p.due_age, p.due_since_run) IS DISTINCT FROM (k.idle, k.age, k.since_run)
                OR p.due <> (p.last_source_seq > p.hold_seq AND coalesce(p.suspect_seq > -1 OR p.timed
                    OR coalesce(p.reported_prompt_tokens + p.tokens_since_report, k.overhead + ceil(k.scale * p.live_tokens)::bigint,
                        p.live_tokens + p.live_estimated_tokens * k.margin) > k.due_tokens
                    OR p.messages_since_run >= k.due_messages OR p.turns_since_run >= k.due_turns OR p.tokens_since_run >= k.due_new_tokens
                    OR p.live_messages >= k.due_live_messages OR p.new_signals & k.due_signals <> 0, false))))
    SELECT coalesce(array_agg(d.sid ORDER BY d.n), '{}'), array_agg(d.version ORDER BY d.n), array_agg(d.name ORDER BY d.n), array_agg(d.of ORDER BY d.n),
        array_agg(d.prefix ORDER BY d.n), (SELECT max(sid) FROM page), (SELECT count(*) FROM page)
    INTO v_sids, v_rows, v_names, v_of, v_prefix, v_next, v_seen FROM differ d;
    SELECT coalesce(array_agg(@schema@.with_thresholds(p.s, v_names[p.i], h)) FILTER (WHERE p.version = v_rows[p.i]), '{}'),
        coalesce(array_agg(p.s) FILTER (WHERE p.version <> v_rows[p.i]), '{}'), coalesce(array_agg((p.s).sid), '{}'),
        array_agg((p.s).sid) FILTER (WHERE (p.s).state <> 'active')
    INTO v_new, v_moved, v_done, v_wake
    FROM (SELECT p AS s, p.xmin::text AS version, q.i FROM unnest(v_sids[:p_limit]) WITH ORDINALITY q(sid, i) JOIN @schema@.sessions p ON p.sid = q.sid
        ORDER BY p.sid FOR NO KEY UPDATE OF p SKIP LOCKED) p
    LEFT JOIN @schema@.thresholds h ON h.policy = v_of[p.i] AND h.model_prefix = v_prefix[p.i];
    PERFORM @schema@.save_policies(v_new);
    -- A run has seen all messages of what a guard held, so no one would look for it.
    INSERT INTO @schema@.outbox AS o (sid, tenant) SELECT n.sid, n.tenant FROM unnest(v_new) n WHERE n.due AND n.sid = ANY(v_wake)
    ON CONFLICT (sid) DO UPDATE SET gen = o.gen + 1, last_at = now();
    FOREACH s IN ARRAY v_moved LOOP   -- they may match other policies
        PERFORM @schema@.use_policy(s);
    END LOOP;
    changed := cardinality(v_done);
    IF cardinality(v_sids) > p_limit AND changed > 0 THEN
        v_next := r.cursor_sid;   -- the rest of the page in the next call
    ELSE
        r.skipped_sid := least(r.skipped_sid, (SELECT min(x) FROM unnest(v_sids) x WHERE x <> ALL (v_done)));
        IF v_seen < v_scan THEN   -- the end of the pass
            state := CASE WHEN r.final AND r.skipped_sid IS NULL THEN 'done' ELSE 'pass' END;
            v_next := CASE WHEN r.final THEN coalesce(r.skipped_sid - 1, 0) ELSE 0 END;
            r.last_sid := 0;   -- the first pass is over: awaits_policies
        END IF;
    END IF;
    UPDATE @schema@.policy_refresh p SET cursor_sid = v_next, last_sid = r.last_sid, final = r.final, changed = p.changed + refresh_policies.changed,
        skipped_sid = CASE WHEN state = 'pass' THEN NULL ELSE r.skipped_sid END,
        reached = CASE WHEN state = 'done' THEN r.revision ELSE p.reached END, reached_at = CASE WHEN state = 'done' THEN now() ELSE p.reached_at END;
END $$;
