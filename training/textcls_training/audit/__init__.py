"""Which rows probably have a wrong label, and why.

held_out.py   the answers for each row of models that have not seen it
suspects.py   from these answers to the rows to look at, the surest first
run.py        the audit, as called by `textcls check --labels` and `textcls.audit_labels`
"""
