-- Wakes a relay that sleeps (Store.Sleep), which has the first lock, exclusively, for as long. A writer shares it to its
-- end, so that no relay falls asleep before what the writer wrote can be seen. Of the writers of a time only that with the second lock
-- notifies: NOTIFY has the commits of all that notify wait for each other. If it rolls back, the relay wakes within a second.
CREATE OR REPLACE FUNCTION @schema@.wake_relay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock_shared('@schema@.outbox'::regclass::oid::int, 1)
            AND pg_try_advisory_xact_lock('@schema@.outbox'::regclass::oid::int, 2) THEN
        PERFORM pg_notify('@schema@_relay', '');
    END IF;
    RETURN NULL;
END $$;
