"""The constants of the memory model, each with its source."""

# Strength — spec 1 "Activation model"; base rate and floor from DIP-0019 (reference/1 §1.2); forms settled in DESIGN §10.
BASE_DECAY = 0.05
STRENGTH_FLOOR = 0.05
REINFORCE_RETRIEVAL = 0.10
REINFORCE_STORAGE = 0.05
CONSOLIDATION_FACTOR = 2.0
FEEDBACK_POSITIVE_STRENGTH = 0.05
FEEDBACK_NEGATIVE_STRENGTH = -0.10
# Ratings by agents and programs cannot lower a person's statement below this: it stays injectable until a person decides otherwise.
RATED_BY_OTHERS_FLOOR = 0.5

# Bands — spec 1 "Activation thresholds".
ACTIVE_ABOVE = 0.5
FADING_ABOVE = 0.3
DORMANT_ABOVE = 0.1

# Score — DESIGN §10; anchors and feedback from reference/1 §1.6–1.7, schema from §1.8.
RELEVANCE_SCALE = 10.0
ANCHOR_BOOST = 0.5
ANCHOR_BOOST_MAX = 2.0
ANCHOR_SHARED_WORDS = 2
SCHEMA_BOOST_MAX = 2.0
FEEDBACK_UP_STEP, FEEDBACK_UP_MAX = 0.05, 0.30
FEEDBACK_DOWN_STEP, FEEDBACK_DOWN_FLOOR = 0.10, 0.50
# Spec 1 calls derivations in other sessions the most valuable but gives no number; they weigh less than a rating and are bounded.
DERIVED_STEP, DERIVED_MAX = 0.02, 0.10
CONFIDENCE_BASE, CONFIDENCE_SPAN = 0.75, 0.5
# Fading, stale, unconfirmed and disputed memories rank after otherwise equal ones.
FADING_WEIGHT, DORMANT_WEIGHT, STALE_WEIGHT = 0.9, 0.75, 0.85
CANDIDATE_WEIGHT, DISPUTED_WEIGHT, ARCHIVED_WEIGHT = 0.8, 0.7, 0.6
# Hybrid adds recency and importance (DESIGN §9): small, so that they order equal matches and never outweigh a better one.
RECENCY_BOOST, RECENCY_HALF_LIFE_DAYS = 0.2, 30.0
IMPORTANCE_BOOST = 0.4

# The weight of a word by field: the statement, its subject, its support, its cues (DESIGN §9).
FIELD_WEIGHTS = (1.0, 0.8, 0.4, 1.0)

# The number of memories nearest to a task to consider.
NEAREST_TO_TASK = 12

# Injection — spec 1 "Injection scoring", DESIGN §10.
MAX_DIRECTIVES, MAX_CONSIDER, MAX_RELATED = 10, 5, 3
MAX_UNCONFIRMED = 3
DIRECTIVE_SHARE, CONSIDER_SHARE, RELATED_SHARE = 0.75, 0.10, 0.15
DEFAULT_BUDGET = 2000
SPREAD_FLOOR = 0.15

# Associations — spec 1 "Associations", DESIGN §10.
ASSOCIATION_CAP = 0.95
CO_ACCESS_STEP, CO_ACCESS_NEW = 0.05, 0.1
CO_ACCESS_DAILY, CO_ACCESS_PRUNE = 0.95, 0.05
# A memory injected in every session would otherwise link to all others, and each fold journals all of its links.
MAX_CO_ACCESS_LINKS = 32
SCHEMA_LINK, SCHEMA_MEMBERS, SCHEMA_SHARED_ANCHORS = 0.4, 3, 2

# Freshness — DESIGN §4 and §10.
HORIZON_DAYS = 180.0

# The confidence below which a captured memory is speculative.
INFERRED_FROM = 0.40
SPECULATIVE_DAYS = 30

# Statements — spec 1 "Core fields"; pass rate from "Promotion pipeline".
STATEMENT_WORDS = (25, 60)
PASS_RATE = (0.30, 0.50)
