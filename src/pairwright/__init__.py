"""pairwright: makes, refines and packs image-text training data.

The rooms are sub-packages: ``datasets`` (records, readers, writers), ``indexes`` (encoders, FAISS),
``generators`` (text makers), ``filters`` (scorers, refinement), ``flows`` (Prefect).
Importing this package imports none of them.
"""

__version__ = "0.1.0"
