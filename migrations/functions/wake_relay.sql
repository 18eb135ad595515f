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

-- Only where they are missing, as writers wait for it. The runs are those that are requested in SQL.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '@schema@.outbox'::regclass AND tgname = 'wake_relay') THEN
        CREATE TRIGGER wake_relay AFTER INSERT ON @schema@.outbox FOR EACH ROW EXECUTE FUNCTION @schema@.wake_relay();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '@schema@.runs'::regclass AND tgname = 'wake_relay') THEN
        CREATE TRIGGER wake_relay AFTER INSERT ON @schema@.runs FOR EACH ROW WHEN (NEW.status = 'queued' AND NEW.delivery = 0)
            EXECUTE FUNCTION @schema@.wake_relay();
    END IF;
END $$;
