import os

import pytest

from trainlint.facts import history, store
from trainlint.facts.history import UNKNOWN
from trainlint.facts.versions import parse, version

ALL = history.frameworks()


@pytest.fixture
def arguments():
    return history.framework("transformers").section("TrainingArguments")


@pytest.mark.parametrize(
    ("versions", "known"),
    [("==4.30.2", True), ("==4.46.1", True), (">=4.51", False), ("==5.0", False), (">=4.40,<5", None), (None, None)],
)
def test_a_key_is_known_until_it_is_removed(arguments, versions, known):
    key = arguments["evaluation_strategy"]
    assert (key.deprecated_in, key.removed_in, key.renamed_to) == ("4.41.0", "4.51.0", "eval_strategy")
    assert key.known_in(versions and parse(versions)) is known


def test_a_key_is_unknown_before_it_came(arguments):
    assert arguments["eval_strategy"].known_in(parse("==4.40.2")) is False
    assert arguments["eval_strategy"].known_in(parse("==4.41.0")) is True
    assert arguments["learning_rate"].first_seen is None


@pytest.mark.parametrize(
    ("versions", "default"),
    [
        ("==4.30.2", "adamw_hf"),
        ("==4.46.0", "adamw_torch"),
        (">=4.46,<4.54", "adamw_torch"),
        ("==4.57.1", UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_a_default_is_known_where_it_is_the_same(arguments, versions, default):
    assert arguments["optim"].default_in(versions and parse(versions)) == default


def test_all_candidates_of_a_default_are_given(arguments):
    assert arguments["optim"].defaults_in(parse("4.57")) == ("adamw_torch", "adamw_torch_fused")
    assert arguments["learning_rate"].default_in(None) == 5e-05
    assert arguments["max_steps"].default_in(None) == -1


def test_choices_follow_the_version(arguments):
    assert "adamw_hf" in arguments["optim"].choices_in(parse("4.40"))
    assert "adamw_hf" not in arguments["optim"].choices_in(parse("5.0"))
    assert arguments["learning_rate"].choices_in(None) is None


def test_a_deprecation_follows_the_version(arguments):
    key = arguments["no_cuda"]
    assert key.deprecated(parse("==4.31.0")) is False
    assert key.deprecated(parse("==4.40.2")) is True


def test_trl_inherits_the_transformers_it_asks_for():
    section = history.framework("trl").section("SFTConfig")
    old, new = {"trl": parse("==0.12.2")}, {"trl": parse("==1.16.0")}
    assert section.inherits == "transformers"
    assert section["learning_rate"].framework == "trl"
    assert section["weight_decay"].framework == "transformers"
    assert section.known_in("evaluation_strategy", old)
    assert section.known_in("evaluation_strategy", new) is False
    assert section.default_in("logging_steps", old) == 500
    assert section.default_in("logging_steps", new) == 10
    assert section.known_in("max_seq_length", old)
    assert section.known_in("max_seq_length", new) is False
    assert "max_length" in section.names_for(new)
    assert "max_seq_length" not in section.names_for(new)
    pinned = {**new, "transformers": parse("==5.24.0")}
    assert section.known_in("warmup_ratio", pinned) is False
    assert str(history.framework("trl").companion("transformers", parse("==0.24.0")).text) == ">=4.56.1"


def test_a_key_that_moved_to_the_parent_is_the_parents():
    section = history.framework("trl").section("SFTConfig")
    assert section["neftune_noise_alpha"].framework == "transformers"
    assert section.known_in("neftune_noise_alpha", {"trl": parse("==1.0.0")})


def test_deepspeed_is_sorted_by_the_path_of_the_json_object():
    framework = history.framework("deepspeed")
    zero = framework.section("zero_optimization")
    assert zero["stage"].default_in(None) == 0
    assert zero["stage3_prefetch_bucket_size"].default_in(None) == zero["prefetch_bucket_size"].default_in(None)
    assert zero["cpu_offload"].renamed_to == "offload_optimizer"
    assert framework.section("")["gradient_clipping"].default_in(None) == 0
    assert framework.section("")["nebula"].known_in(parse(">=0.19.7")) is False
    assert framework.section("bf16")["enabled"].first_seen is None


def test_effective_defaults_stand_where_the_field_says_none():
    accelerate = history.framework("accelerate")
    assert accelerate.section("fsdp_config")["fsdp_version"].default_in(None) == 1
    assert accelerate.section("deepspeed_config")["zero_stage"].default_in(None) == 2
    bits = history.framework("transformers").section("BitsAndBytesConfig")
    assert bits["bnb_4bit_compute_dtype"].default_in(None) == "float32"


def test_the_closest_name_is_like_enough(arguments):
    assert history.closest("learning_rat", arguments) == "learning_rate"
    assert history.closest("gradient-checkpointing", arguments) == "gradient_checkpointing"
    assert history.closest("banana", arguments) is None


def test_what_was_not_read_is_not_covered():
    framework = history.framework("transformers")
    assert framework.covers(parse("==4.46.0"))
    assert framework.covers(parse(">=4.46,<5"))
    assert not framework.covers(parse("==4.20.0"))
    assert not framework.covers(parse("==99.0"))
    assert not framework.covers(parse(">=4.46"))
    with pytest.raises(KeyError):
        history.framework("no-such")
    with pytest.raises(KeyError):
        framework.section("NoSuch")


@pytest.mark.parametrize("name", ALL)
def test_versions_of_a_key_come_in_order(name):
    framework = history.framework(name)
    releases = [version(text) for text in framework.versions]
    assert None not in releases
    assert releases == sorted(releases)
    for section in map(framework.section, framework.sections):
        for key in filter(None, map(section.own, section)):
            place = framework.place
            first = place[key.first_seen or framework.versions[0]]
            assert key.removed_in is None or first < place[key.removed_in], key
            assert key.deprecated_in is None or first <= place[key.deprecated_in], key
            defaults = [place[since] for since, *_ in key._entry.get("defaults", ())]
            assert defaults == sorted(set(defaults)), key


@pytest.mark.parametrize("name", ALL)
def test_a_renamed_key_is_old_and_its_new_name_exists(name):
    framework = history.framework(name)
    everywhere = {key for section in map(framework.section, framework.sections) for key in section}
    for section in map(framework.section, framework.sections):
        for key in filter(None, map(section.own, section)):
            if key.renamed_to:
                assert key.removed_in or key.deprecated_in, key
                assert key.renamed_to in everywhere, key
                assert key.renamed_to != key.name or key.section != section.name, key


@pytest.mark.parametrize("name", ALL)
def test_choices_named_by_a_section_are_listed_there(name):
    framework = history.framework(name)
    for section in map(framework.section, framework.sections):
        for key in filter(None, map(section.own, section)):
            choices = key.choices_in(None)
            assert choices is None or choices, key


@pytest.mark.parametrize("name", ALL)
def test_files_are_sorted(name):
    data = store.read("history", name)
    assert list(data["sections"]) == sorted(data["sections"])
    for section in data["sections"].values():
        assert list(section["keys"]) == sorted(section["keys"])


def test_all_histories_are_small():
    folder = os.path.join(store.ROOT, "history")
    assert sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)) < 2 * 10**6
