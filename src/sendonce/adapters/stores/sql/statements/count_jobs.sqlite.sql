-- Change the books of a dispatch. ?1 dispatch, then by how much each counter changes
INSERT INTO dispatch_books (
    dispatch_id, slot, scheduled, sending, sent, failed, skipped, dead, in_doubt,
    delivered, bounced, complained, rejected, duplicates)
VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (dispatch_id, slot) DO UPDATE SET
    scheduled = scheduled + excluded.scheduled, sending = sending + excluded.sending, sent = sent + excluded.sent,
    failed = failed + excluded.failed, skipped = skipped + excluded.skipped, dead = dead + excluded.dead,
    in_doubt = in_doubt + excluded.in_doubt, delivered = delivered + excluded.delivered,
    bounced = bounced + excluded.bounced, complained = complained + excluded.complained,
    rejected = rejected + excluded.rejected,
    duplicates = duplicates + excluded.duplicates
