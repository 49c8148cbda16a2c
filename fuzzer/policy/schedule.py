"""The schedule: what to run next, and what to learn from what ran.

Arms are hierarchical: an engine (template, mutate, llm), then a mutation or a prompt family with its form of output;
dimensions, then their values; operator families, then operators; bug patterns and subgraphs. Credit goes to what was
*realised* and used, never to what was merely asked for.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fuzzer.features.space import FeatureSpace
from fuzzer.policy.bandit import ArmSet
from fuzzer.policy.blockers import Blockers
from fuzzer.policy.combinations import DOMAIN as PAIRS
from fuzzer.policy.corpus import Corpus, Seed
from fuzzer.policy.estimate import Plateau
from fuzzer.policy.plan import ENGINES, SPLICE, Order, Outcome, Plan
from fuzzer.policy.streams import Streams
from fuzzer.policy.vector import VectorSampler

#: Features asked of a fresh program; more than six yields nothing that runs.
_TEMPLATE_FEATURES = (2, 6)
#: A mutation changes one thing, so it can hardly bring about more.
_MUTATE_FEATURES = (1, 2)
_FAMILIES = (1, 3)
#: Share of uniform choice on a plateau, in place of the arms' floor of 5 %.
_PLATEAU_EXPLORATION = 0.2
#: After a finding: so many mutations of its program, and fresh programs with the same features on other operators.
_EXPLOIT_MUTATIONS, _EXPLOIT_TRANSFERS = 5, 3
_EXPLOIT_QUEUE = 64
_EXPLOIT_SHARE = 0.5  # of the plans while the queue holds any: neighbourhoods never stop the search at large
_REVIEW_EVERY = 50  # runs between two looks at blockers, and between two steps of fading advice
_ADVICE_FADE = 0.8  # power to which a factor is raised at each step: a factor of 4 is 1.4 after 300 runs
_ADVICE_GONE = 0.05  # logarithm below which nothing is left of it
#: Tokens that cost a prompt arm as much as one second: roughly what a small hosted or a local model writes in it.
_TOKENS_A_SECOND = 200.0


class Schedule:
    """Decides with ``next`` and learns with ``learn``. Pure and deterministic: same calls, same plans."""

    def __init__(
        self,
        space: FeatureSpace,
        families: Sequence[str],
        operator_keys: Mapping[str, Sequence[str]],
        mutations: Sequence[str],
        seed: int,
        *,
        askable: Collection[str] | None = None,
        entries: Mapping[str, float] | None = None,
        targets: int = 1,
        uniform: bool = False,
        open_loop: bool = False,
    ) -> None:
        """
        Args:
            askable: features that the engines can bring about; None for all.
            entries: bug patterns and subgraphs → their weights, prior odds of mattering.
            families: operator families that the catalogue offers.
            operator_keys: family → keys of its operators.
            mutations: names of the mutation operators; ``splice`` is given a donor. Empty: template programs only.
            seed: of the campaign; every stream is derived from it.
            targets: number of targets, served in turn.
            uniform: ablation: every arm is chosen uniformly; seeds and neighbourhoods of findings still feed back.
            open_loop: ablation: nothing that ran has any influence; template programs only, all arms uniform.
        """
        self.space = space
        self.open_loop, self.uniform, self.targets = open_loop, uniform, targets
        self.operator_keys = {family: tuple(keys) for family, keys in operator_keys.items()}
        self._families_of: dict[str, list[str]] = {}
        for family, keys in self.operator_keys.items():
            for key in keys:
                self._families_of.setdefault(key, []).append(family)
        self.learning = not (uniform or open_loop)
        self.engines = ArmSet("engine", ENGINES, learning=self.learning)
        self.mutations = ArmSet("mutation", mutations, learning=self.learning)
        self.prompts = ArmSet("prompt", learning=self.learning)  # "family:form", added when first used
        self.advice: dict[str, float] = {}  # arm → what is left of the factor
        self.families = ArmSet("family", families, learning=self.learning)
        self.operators: dict[str, ArmSet] = {}  # family → arms, made at first use
        self.weights = dict(entries or {})
        self.entries = ArmSet("knowledge", self.weights, learning=self.learning)
        self.raised: dict[str, float] = {}  # arm → factor on its prior, for good
        self._names = {"mutation": tuple(mutations), "family": tuple(families)}  # a resumed set may hold older arms
        self.vectors = VectorSampler(space, self.learning, askable)
        self.plateau = Plateau()
        self.blockers = Blockers()
        self.streams = Streams(seed)
        self.exploit: deque[dict[str, Any]] = deque(maxlen=_EXPLOIT_QUEUE)
        self.number = 0  # plans made
        self.learnt = 0  # outcomes taken in
        self.orders = 0  # made for the language model

    # --- deciding -------------------------------------------------------------------------------------------------

    def next(self, corpus: Corpus, offer: Order | None = None, always: bool = False) -> Plan:
        """The next plan. Chooses a seed from the corpus when it mutates, which counts there as chosen.

        ``offer``: an order of which the language model's answer lies ready; ``always``: take it up, whatever the arms.
        """
        self.number += 1
        if offer is not None and always:
            return self._answered(offer)
        if self.exploit and self.streams["exploit"].random() < _EXPLOIT_SHARE:
            return self._neighbour(self.exploit.popleft(), corpus)
        engine = "template"
        among = [
            name
            for name in ENGINES
            if name == "template"
            or (name == "mutate" and corpus.seeds and self._names["mutation"] and not self.open_loop)
            or (name == "llm" and offer is not None)
        ]
        if len(among) > 1:
            engine = self.engines.choose(self.streams["engine"], among, self.exploration)
        if engine == "llm" and offer is not None:
            return self._answered(offer)
        return self._mutation(corpus) if engine == "mutate" else self._template()

    def order(self, corpus: Corpus, arms: Sequence[str]) -> Order:
        """What the language model should write next, by one of ``arms`` (``fresh:…`` among them)."""
        among = [arm for arm in arms if corpus.seeds or not arm.startswith("mutate:")]
        arm = self.prompts.choose(self.streams["llm"], among, self.exploration)
        features = self.vectors.draw(self.streams["llm"], *_TEMPLATE_FEATURES, self.exploration)
        families = self.families.choose_many(self.streams["llm"], _FAMILIES[1], self._names["family"])
        seed = corpus.choose(self.streams["llm"]) if arm.startswith("mutate:") else None
        number = self.streams["llm"].getrandbits(62)
        self.orders += 1
        return Order(self.orders, arm, features, tuple(families), seed.id if seed else "", number)

    def _answered(self, order: Order) -> Plan:
        """The plan for a ready answer: it has the order's features, families and seed."""
        target = (self.number - 1) % self.targets
        return Plan(self.number, "llm", order.arm, order.seed, "", order.features, order.families, target, order.random)

    @property
    def exploration(self) -> float | None:
        """Share of uniform choice; None leaves the arms at their floor."""
        return _PLATEAU_EXPLORATION if self.plateau.reached else None

    def choose_operators(self, family: str, rng: random.Random, k: int) -> list[str]:
        """Up to k distinct operators of a family, best first; [] for a family without operators.

        ``rng`` is the program's own stream (seeded with ``Plan.random``).
        """
        keys = self.operator_keys.get(family, ())
        # Choosing must leave no trace: the state is a fold of what was recorded, and this call is not.
        arms = self.operators.get(family) or ArmSet(family, keys, learning=self.learning)
        return arms.choose_many(rng, k, keys, self.exploration) if keys else []

    def rank_entries(self, ids: Sequence[str], rng: random.Random) -> list[str]:
        """Bug patterns or subgraphs in the order in which to try them: a Thompson draw each, times their weights.

        ``rng`` is the program's own stream; like ``choose_operators`` this leaves no trace.
        """
        return self.entries.choose_many(rng, len(ids), ids, self.exploration, self.weights)

    def entry_odds(self) -> dict[str, tuple[float, float]]:
        """Entry → (a, b) for ``Retriever.retrieve``: its weight times how much better than the average entry it did.

        Only entries that ran are in it: the others stand at their weights.
        """
        rate = self.entries.rate
        found = {}
        for name in self.weights:
            if self.entries.pulls(name) > 0:
                found[name] = (self.weights[name] * self.entries.mean(name) / rate, 1.0)
        return found

    def _template(self) -> Plan:
        features = self.vectors.draw(self.streams["features"], *_TEMPLATE_FEATURES, self.exploration)
        return self._plan("template", features=features, families=self._draw_families(features))

    def _mutation(self, corpus: Corpus) -> Plan:
        among = [name for name in self._names["mutation"] if name != SPLICE or len(corpus) > 1]
        if not among:
            return self._template()
        seed = corpus.choose(self.streams["corpus"])
        assert seed is not None  # the caller has looked
        operator = self.mutations.choose(self.streams["mutation"], among, self.exploration)
        donor = corpus.donor(self.streams["donor"], seed) if operator == SPLICE else None
        features = self.vectors.draw(self.streams["features"], *_MUTATE_FEATURES, self.exploration)
        return self._mutate_plan(operator, seed, donor, features)

    def _mutate_plan(self, operator: str, seed: Seed, donor: Seed | None, features: tuple[str, ...]) -> Plan:
        return self._plan(
            "mutate",
            operator=operator,
            seed=seed.id,
            donor=donor.id if donor else "",
            features=features,
            families=self._draw_families(features),
        )

    def _plan(self, engine: str, **parts: Any) -> Plan:
        return Plan(
            number=self.number,
            engine=engine,
            target=(self.number - 1) % self.targets,
            random=self.streams["program"].getrandbits(62),
            **parts,
        )

    def _draw_families(self, features: Sequence[str]) -> tuple[str, ...]:
        """Families to draw from: both ends of an asked adjacency first, then by arm."""
        rng = self.streams["families"]
        wanted: list[str] = []
        for feature in features:
            if self.space.features[feature].detector == "adjacency":
                for group in self.space.features[feature].arguments[0].split(">"):
                    among = [
                        family for family in self.space.families_of_group(group) if family in self._names["family"]
                    ]
                    if among:
                        wanted.append(self.families.choose(rng, among, self.exploration))
        count = rng.randint(*_FAMILIES)
        wanted += self.families.choose_many(rng, count, self._names["family"], self.exploration)
        return tuple(dict.fromkeys(wanted))

    # --- learning -------------------------------------------------------------------------------------------------

    def learn(self, outcome: Outcome) -> None:
        """Take in one outcome. Order matters: replaying the same calls gives the same state."""
        self.learnt += 1
        if self.open_loop:
            return
        plan, reward, cost = outcome.plan, outcome.reward, outcome.cost
        self.engines.credit(plan.engine, reward, cost)
        if plan.engine == "llm":
            self.prompts.credit(plan.operator, reward, cost + outcome.tokens / _TOKENS_A_SECOND)
        elif plan.operator:
            self.mutations.credit(plan.operator, reward, cost)
        self.vectors.credit(plan.features, outcome.realised, reward, cost)
        self._credit_operators(outcome)
        if outcome.entries:
            self.entries.credit_many(outcome.entries, reward, cost)
        discovered = outcome.new_finding or any(
            count > 0 for domain, count in outcome.new_coverage.items() if domain != PAIRS
        )
        self.plateau.observe(outcome.species or outcome.operators, discovered)
        self.blockers.observe(outcome.bucket, (*outcome.realised, *outcome.operators, *outcome.entries))
        if self.learnt % _REVIEW_EVERY == 0:
            for bucket, arm, factor in self.blockers.review():
                self._multiply(arm, f"blocker:{bucket}", factor)
            self._fade_advice()
        if outcome.new_finding:
            self._push_neighbourhood(outcome)

    def advise(self, factors: Mapping[str, float], source: str = "advice") -> list[str]:
        """Bounded factors (¼ … 4) on arms, from outside, which fade. Returns the names that are no arm."""
        unknown = [arm for arm, factor in factors.items() if not self._multiply(arm, source, factor)]
        if source == "advice":
            bounded = {arm: min(max(factor, 0.25), 4.0) for arm, factor in factors.items() if arm not in unknown}
            self.advice.update(bounded)
        return unknown

    def raise_priors(self, factors: Mapping[str, float]) -> list[str]:
        """Lasting factors (¼ … 4) on arms, such as those of what changed in the compiler. Returns what is no arm."""
        self.raised = dict(factors)
        return [arm for arm, factor in factors.items() if not self._multiply(arm, "changed", factor)]

    def _fade_advice(self) -> None:
        for arm, factor in list(self.advice.items()):
            factor **= _ADVICE_FADE
            self.advice[arm] = factor = 1.0 if abs(math.log(factor)) < _ADVICE_GONE else factor
            self._multiply(arm, "advice", factor)
            if factor == 1.0:
                del self.advice[arm]

    def _multiply(self, arm: str, source: str, factor: float) -> bool:
        found = False
        single = (self.engines, self.mutations, self.prompts, self.families, self.entries)
        for arms in (*single, self.vectors.dimensions, self.vectors.values):
            if arm in arms:
                arms.set_multiplier(arm, source, factor)
                found = True
        for family in self._families_of.get(arm, ()):
            self._operator_arms(family).set_multiplier(arm, source, factor)
            found = True
        return found

    def _credit_operators(self, outcome: Outcome) -> None:
        used: dict[str, list[str]] = {}
        for key in outcome.operators:
            for family in self._families_of.get(key, ()):
                used.setdefault(family, []).append(key)
        if used:
            self.families.credit_many(used, outcome.reward, outcome.cost)
        for family, keys in used.items():
            self._operator_arms(family).credit_many(keys, outcome.reward, outcome.cost)

    def _operator_arms(self, family: str) -> ArmSet:
        if family not in self.operators:
            self.operators[family] = ArmSet(family, self.operator_keys.get(family, ()), learning=self.learning)
        return self.operators[family]

    # --- the neighbourhood of a finding ---------------------------------------------------------------------------

    def _push_neighbourhood(self, outcome: Outcome) -> None:
        """Queue plans near a finding; the oldest fall out when there are too many."""
        asked = [feature for feature in outcome.plan.features if feature in outcome.realised]
        if not asked:  # nothing asked held: the least common of what was there
            known = sorted(feature for feature in outcome.realised if feature in self.space.features)
            asked = sorted(known, key=self.vectors.values.pulls)[: _TEMPLATE_FEATURES[0]]
        families = sorted({family for key in outcome.operators for family in self._families_of.get(key, ())})
        common = {"features": asked, "families": families[: _FAMILIES[1]] or list(outcome.plan.families)}
        if outcome.program:
            names = [name for name in self._names["mutation"] if name != SPLICE]
            for operator in self.mutations.choose_many(self.streams["exploit"], _EXPLOIT_MUTATIONS, names):
                self.exploit.append({**common, "operator": operator, "seed": outcome.program})
        for _ in range(_EXPLOIT_TRANSFERS):
            self.exploit.append({**common, "operator": "", "seed": ""})

    def _neighbour(self, wanted: Mapping[str, Any], corpus: Corpus) -> Plan:
        features, families = tuple(wanted["features"]), tuple(wanted["families"])
        self.vectors.remember(features)
        if wanted["seed"] and wanted["seed"] in corpus:
            corpus.get(wanted["seed"]).chosen += 1
            return self._plan(
                "mutate", operator=wanted["operator"], seed=wanted["seed"], features=features, families=families
            )
        return self._plan("template", features=features, families=families)

    # --- state ----------------------------------------------------------------------------------------------------

    def to_map(self) -> dict[str, Any]:
        """The whole state but the catalogue and the space, as plain data."""
        return {
            "targets": self.targets,
            "uniform": self.uniform,
            "open_loop": self.open_loop,
            "number": self.number,
            "learnt": self.learnt,
            "orders": self.orders,
            "prompts": self.prompts.to_map(),
            "advice": dict(self.advice),
            "engines": self.engines.to_map(),
            "mutations": self.mutations.to_map(),
            "families": self.families.to_map(),
            "operators": {family: arms.to_map() for family, arms in self.operators.items()},
            "entries": self.entries.to_map(),
            "vectors": self.vectors.to_map(),
            "plateau": self.plateau.to_map(),
            "blockers": self.blockers.to_map(),
            "streams": self.streams.to_map(),
            "exploit": [dict(wanted) for wanted in self.exploit],
        }

    @classmethod
    def from_map(
        cls,
        data: Mapping[str, Any],
        space: FeatureSpace,
        families: Sequence[str],
        operator_keys: Mapping[str, Sequence[str]],
        mutations: Sequence[str],
        askable: Collection[str] | None = None,
        entries: Mapping[str, float] | None = None,
    ) -> Schedule:
        """The state that ``to_map`` wrote, over a catalogue that may have grown: new arms start fresh."""
        schedule = cls(
            space,
            families,
            operator_keys,
            mutations,
            data["streams"]["seed"],
            askable=askable,
            entries=entries,
            targets=data["targets"],
            uniform=data["uniform"],
            open_loop=data["open_loop"],
        )
        schedule.number, schedule.learnt = data["number"], data["learnt"]
        schedule.engines = ArmSet.from_map(data["engines"])
        schedule.mutations = ArmSet.from_map(data["mutations"])
        if "prompts" in data:  # snapshots of earlier versions have none
            schedule.orders, schedule.advice = data["orders"], dict(data["advice"])
            schedule.prompts = ArmSet.from_map(data["prompts"])
        schedule.families = ArmSet.from_map(data["families"])
        if "entries" in data:
            schedule.entries = ArmSet.from_map(data["entries"])
        known = ((schedule.mutations, mutations), (schedule.families, families), (schedule.entries, schedule.weights))
        for arms, names in known:
            for name in names:
                arms.add(name)
        schedule.operators = {family: ArmSet.from_map(arms) for family, arms in data["operators"].items()}
        schedule.vectors.restore(data["vectors"])
        schedule.plateau = Plateau.from_map(data["plateau"])
        schedule.blockers = Blockers.from_map(data["blockers"])
        schedule.streams = Streams.from_map(data["streams"])
        schedule.exploit.extend(dict(wanted) for wanted in data["exploit"])
        return schedule
