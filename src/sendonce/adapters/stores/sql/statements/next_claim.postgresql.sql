-- A sequence and not a row: no claim waits for another worker's commit.
SELECT nextval('claim_seq')
