"""``findings/labels.json``: a person's judgements of findings."""

from __future__ import annotations

from fuzzer.labels import Labels
from fuzzer.store.decisions import DecisionFile
from fuzzer.store.directory import CampaignDirectory


class LabelStore(DecisionFile[Labels]):
    """The labels of a campaign."""

    def __init__(self, directory: CampaignDirectory) -> None:
        super().__init__(directory.labels, Labels.from_map, Labels)
