UPDATE ledger SET claim_seq = claim_seq + 1 RETURNING claim_seq
