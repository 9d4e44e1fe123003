"""The sixteenth schema: the letters of campaigns, and what was told of them, as a data team reads them."""

from alembic import op

revision = "0016"
down_revision = "0015"

# One letter to a recipient of a dispatch, ever: that pair is what makes a second one impossible.
_CAMPAIGN_JOBS = """
CREATE VIEW campaign_jobs AS SELECT
    j.id AS job_id, w.tenant_id, w.campaign_id, w.lead_id, w.step, w.sender_id,
    COALESCE(j.letter_id, d.letter_id) AS template_id, w.slot_at AS scheduled_at,
    CAST(j.dispatch_id AS TEXT) || '/' || j.recipient_key AS idempotency_key, j.state AS status
FROM campaign_letters w
JOIN message_jobs j ON j.dispatch_id = w.dispatch_id AND j.recipient_key = w.address_key
JOIN dispatches d ON d.id = w.dispatch_id
"""
# The payload is that row's own, or that of its month's archive once it is pruned.
_CAMPAIGN_EVENTS = """
CREATE VIEW campaign_events AS SELECT
    e.id AS event_id, j.job_id, j.tenant_id, j.campaign_id, e.message_id, e.kind AS event_type,
    e.occurred_at AS "timestamp", e.id AS provider_payload_ref
FROM campaign_jobs j JOIN delivery_events e ON e.job_id = j.job_id
"""


def upgrade() -> None:
    op.execute(_CAMPAIGN_JOBS)
    op.execute(_CAMPAIGN_EVENTS)
