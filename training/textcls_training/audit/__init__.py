"""Which rows probably have a wrong label, and why.

held_out.py   what models that have not seen a row say of it
suspects.py   from these answers to the rows to look at, the surest first
run.py        the audit: what `textcls check --labels` calls, and `textcls.audit_labels` is
"""
