"""The experiments of NLP MetaFormer, small enough for a CPU. Scripts, not part of the installed packages."""
