"""Shortcuts: words, pairs, phrases and lengths that predict a label but have nothing to do with what a text says.

What predicts a label is either part of what is said, or it is not. A word alone does not show which; its place among
other words shows much. The word of a shortcut (a signature, a name, a tag, a mark) was put into texts that would read
as well without it, and these texts are otherwise like all of their label. So a term is reported if

    1. its texts carry one label nearly always            `terms`
    2. what stands before it and what stands behind it
       go together as if it were not there                `placement`
    3. its texts are otherwise as different from each
       other as any of their label                        `coherence`
    4. the model relies on it: put into texts of other
       labels, it makes the label more probable           `reliance`

What fails 2 or 3 (`doubts`) is reported separately, as possible. The length of texts is a special case (`lengths`).
What could not have been found is measured: made-up words are put into copies of the texts (`trial`). `audit` does all
of it; `corpus` contains the texts, in bounded memory.
"""
