-- Change the books of some dispatches, in the order of their ids: two who share a slot wait in line. A row of
-- placeholders each: the dispatch, the slot and by how much each counter changes.
INSERT INTO dispatch_books AS b (
    dispatch_id, slot, scheduled, sending, sent, failed, skipped, dead, in_doubt,
    delivered, bounced, complained, rejected, duplicates)
VALUES {rows}
ON CONFLICT (dispatch_id, slot) DO UPDATE SET
    scheduled = b.scheduled + excluded.scheduled, sending = b.sending + excluded.sending,
    sent = b.sent + excluded.sent, failed = b.failed + excluded.failed, skipped = b.skipped + excluded.skipped,
    dead = b.dead + excluded.dead, in_doubt = b.in_doubt + excluded.in_doubt,
    delivered = b.delivered + excluded.delivered, bounced = b.bounced + excluded.bounced,
    complained = b.complained + excluded.complained, rejected = b.rejected + excluded.rejected,
    duplicates = b.duplicates + excluded.duplicates
