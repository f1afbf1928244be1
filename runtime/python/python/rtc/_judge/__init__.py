"""`rtc verify`: a judge, and two processes that it asks.

The candidate's process runs `kernel_fn`, that of the reference `get_inputs` and `reference_fn`; the judge runs nothing of the
user's. Arguments go from the reference's process to the candidate's; results come from the candidate's, and what its launches
wrote from the journal that the extension module keeps there (`src/journal.rs`).
"""
