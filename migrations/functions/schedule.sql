-- Fires a tick of a schedule, at most once, and returns what became of it, null if it was fired before: of any number of
-- schedulers, one fires. All in the caller's transaction: without its commit the tick is as if it had never been tried.
--
-- fired: a sweep was started. coalesced: one that has not begun stands for it. overlap: none, as p_overlap is skip and one
-- is open or paused. paused: none, as the schedule is paused. missed: none, as the tick is too old (p_missed).
-- What the window of an earlier tick has stopped goes on, unless p_overlap is cancel_other, which ends it with what is open.
--
-- p_source is schedule, operator (who wants a sweep now, whether the schedule is paused or not) or backfill, which also fires
-- a tick that started nothing at its time.
CREATE OR REPLACE FUNCTION @schema@.fire_tick(p_schedule text, p_tick timestamptz, p_fired_by text, p_source text DEFAULT 'schedule',
    p_tenant text DEFAULT '', p_window_end timestamptz DEFAULT NULL, p_overlap text DEFAULT 'buffer_one', p_pause_schedule boolean DEFAULT false,
    p_missed boolean DEFAULT false, p_canary double precision DEFAULT NULL, OUT outcome text, OUT sweep bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_other bigint;
BEGIN
    PERFORM @schema@.refuse_bound();
    -- Ticks of one schedule are one after the other, so that each sees the sweep of the other.
    PERFORM pg_advisory_xact_lock(hashtextextended('@schema@.schedules/' || p_schedule, 0));
    INSERT INTO @schema@.cron_ticks AS t (entry, tick, fired_by, source) VALUES (p_schedule, p_tick, p_fired_by, p_source)
    ON CONFLICT (entry, tick) DO UPDATE SET fired_by = excluded.fired_by, fired_at = now(), source = excluded.source
        WHERE p_source = 'backfill' AND t.outcome IN ('overlap', 'paused', 'missed');
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF p_missed THEN
        outcome := 'missed';
    ELSIF p_source = 'schedule' AND EXISTS (SELECT FROM @schema@.schedule_pauses WHERE schedule = p_schedule AND resumed_at IS NULL) THEN
        outcome := 'paused';
    ELSIF p_overlap = 'cancel_other' THEN
        FOR v_other IN SELECT id FROM @schema@.sweeps WHERE entry = p_schedule
            AND (status IN ('open', 'paused') OR status = 'stopped' AND reason = 'window_ended') ORDER BY id FOR NO KEY UPDATE
        LOOP
            PERFORM @schema@.cancel_sweep(v_other, 'overlap', '');
        END LOOP;
    ELSE
        UPDATE @schema@.sweeps w SET status = 'open', reason = '', changed_by = '', changed_at = now(), ended_at = NULL, window_end = p_window_end
        WHERE w.entry = p_schedule AND w.status = 'stopped' AND w.reason = 'window_ended';
        SELECT id, CASE WHEN due IS NULL AND status <> 'paused' THEN 'coalesced' ELSE 'overlap' END INTO sweep, outcome FROM @schema@.sweeps
        WHERE entry = p_schedule AND (due IS NULL AND status IN ('open', 'stopped') AND tenant = p_tenant OR p_overlap = 'skip' AND status IN ('open', 'paused'))
        ORDER BY due IS NOT NULL, id LIMIT 1;
    END IF;
    IF outcome IS NULL THEN
        outcome := 'fired';
        INSERT INTO @schema@.sweeps (entry, tick, tenant, window_end, pause_schedule, canary_share)
        VALUES (p_schedule, p_tick, p_tenant, p_window_end, p_pause_schedule, nullif(p_canary, 0))
        RETURNING id INTO sweep;
    END IF;
    UPDATE @schema@.cron_ticks t SET outcome = fire_tick.outcome, sweep = fire_tick.sweep WHERE entry = p_schedule AND tick = p_tick;
END $$;

-- Pauses a schedule: its ticks start nothing. Pausing what is paused replaces the note.
CREATE OR REPLACE FUNCTION @schema@.pause_schedule(p_schedule text, p_note text DEFAULT '', p_requested_by text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    INSERT INTO @schema@.schedule_pauses (schedule, note, requested_by) VALUES (p_schedule, coalesce(p_note, ''), coalesce(p_requested_by, ''))
    ON CONFLICT (schedule) WHERE resumed_at IS NULL DO UPDATE SET note = excluded.note, requested_by = excluded.requested_by;
    PERFORM @schema@.note_action(p_requested_by, 'schedule.pause', '', p_schedule, p_note);
END $$;

-- Ends the pause of a schedule. Ticks that passed meanwhile are not fired.
CREATE OR REPLACE FUNCTION @schema@.resume_schedule(p_schedule text, p_requested_by text DEFAULT '') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.refuse_bound();
    UPDATE @schema@.schedule_pauses SET resumed_at = now(), resumed_by = coalesce(p_requested_by, '') WHERE schedule = p_schedule AND resumed_at IS NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'schedule % is not paused', p_schedule USING ERRCODE = 'no_data_found';
    END IF;
    PERFORM @schema@.note_action(p_requested_by, 'schedule.resume', '', p_schedule, '');
END $$;
