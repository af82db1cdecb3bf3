"""The ledger: every lease, stage and volume, recorded before its request, so that a crash loses none of them."""
