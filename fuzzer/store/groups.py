"""``findings/groups.json``: which findings a person merged or split."""

from __future__ import annotations

from fuzzer.grouping import Decisions
from fuzzer.store.decisions import DecisionFile
from fuzzer.store.directory import CampaignDirectory


class GroupStore(DecisionFile[Decisions]):
    """The decisions about groups."""

    def __init__(self, directory: CampaignDirectory) -> None:
        super().__init__(directory.labels.with_name("groups.json"), Decisions.from_map, Decisions)
