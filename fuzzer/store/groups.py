"""``findings/groups.json``: which findings a person merged or split; and what labels say of that."""

from __future__ import annotations

from fuzzer.grouping import Decisions
from fuzzer.store.decisions import DecisionFile
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.labels import LabelStore


class GroupStore(DecisionFile[Decisions]):
    """The decisions about groups."""

    def __init__(self, directory: CampaignDirectory) -> None:
        super().__init__(directory.labels.with_name("groups.json"), Decisions.from_map, Decisions)


def decided(directory: CampaignDirectory) -> Decisions:
    """All that a person said of which findings are one bug: merged, split, or labelled a duplicate of another."""
    decisions = GroupStore(directory).read()
    labels = LabelStore(directory).read()
    for major in labels:
        judgement = labels.get(major)
        if judgement and judgement.of and decisions.split.isdisjoint((major, judgement.of)):
            decisions = decisions.merge([major, judgement.of])
    return decisions
